"""What the store holds and how it is read and written: keys, codec, indexes, typed records, the journal."""
