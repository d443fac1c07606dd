"""The five screens of the board, each a frame for what the models draw."""
