"""How people use it: the command line. No science in here."""
