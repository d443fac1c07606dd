"""The store on PostgreSQL: one truth and one clock for several machines (specs/machines.md)."""
