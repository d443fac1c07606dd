"""The process that carries out the engine's orders on this machine."""
