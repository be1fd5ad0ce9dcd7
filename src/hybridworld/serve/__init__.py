"""How programs and people ask: a server for the Open Inference Protocol, and a page to play with."""
