"""How values are written as text and text is made safe to show: instants, durations, terminal text, files.

Every package may import this one. It imports nothing of Chronex and nothing that is slow to load, because the
start of every command waits for it.
"""
