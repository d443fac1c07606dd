"""What the store holds and how it is read and written: keys and indexes, codec, typed records, the journal."""
