"""Where expressions stand, by kind of file. A finder reads any text and is silent on what it does not know."""
