"""What the dashboard shows, as plain values: no terminal, no widgets, no clock."""
