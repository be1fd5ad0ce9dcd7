"""The commands and their options, by what they are about. Each command imports what it needs when it runs."""
