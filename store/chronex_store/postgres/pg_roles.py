"""Who may do what with a shared store, as SQL for its owner to look at and to run."""

from __future__ import annotations

from collections.abc import Iterator

from chronex_store.postgres.pg_tables import TABLES

# What commands of people change. Definitions of jobs are not among it: who writes them runs commands on every node.
_COMMANDED = ("job_progress", "occurrence", "run", "attempt", "index_entry", "event", "other", "node", "commit_mark")
_ROLES = {
    "node": "runs what is due: chronex run",
    "operator": "gives commands: trigger, pause, resume, cancel, replay, drain; changes no definition",
    "reader": "looks: status, list, history, why, verify, and the views in SQL",
}


def statements(schema: str) -> Iterator[str]:
    """Commented SQL, to be run by the role that owns the schema; to run it twice is to run it once."""
    yield f"-- The owner of schema {schema} makes its tables and applies jobs: chronex apply, chronex store migrate."
    yield "-- Who may apply jobs runs commands on every node: give that role to nobody else."
    yield "-- Whoever runs this makes roles: a superuser, or the owner where it has CREATEROLE."
    for role, purpose in _ROLES.items():
        name = f"{schema}_{role}"
        yield f"-- {name} {purpose}."
        yield (
            f"DO $$ BEGIN CREATE ROLE {name}; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;"
        )
        yield f"GRANT USAGE ON SCHEMA {schema} TO {name};"
        yield f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {name};"
    yield f"GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {schema}_node;"
    yield f"REVOKE INSERT, UPDATE, DELETE ON {schema}.layout FROM {schema}_node;"
    tables = ", ".join(f"{schema}.{name}" for name in _COMMANDED)
    yield f"GRANT INSERT, UPDATE, DELETE ON {tables} TO {schema}_operator;"
    yield f"GRANT UPDATE ON {schema}.journal_head TO {schema}_operator;"
    yield from _guard_definitions(schema)
    yield from _guard_versions(schema)
    yield "-- Then give them to those who log in, for instance:"
    yield f"-- CREATE ROLE machine LOGIN IN ROLE {schema}_node; CREATE ROLE ann LOGIN IN ROLE {schema}_operator;"


# The key of a definition, or of an earlier version of one, that was made for a node: the name in it has a colon.
_OF_A_NODE = "position('\\x3a'::bytea in key) BETWEEN 2 AND position('\\x00'::bytea in key)"


def _guard_definitions(schema: str) -> Iterator[str]:
    """What is to run on each node is a job of its own for every one of them, and the nodes make these."""
    table, role = f"{schema}.job", f"{schema}_node"
    yield '-- Of definitions, nodes write those that are made for a node (run_on = "each") and no others.'
    yield f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;"
    yield f"DROP POLICY IF EXISTS as_granted ON {table};"
    yield f"CREATE POLICY as_granted ON {table} USING (true);"
    for command, rule in (
        ("INSERT", f"WITH CHECK ({_OF_A_NODE})"),
        ("UPDATE", f"USING ({_OF_A_NODE})"),
        ("DELETE", f"USING ({_OF_A_NODE})"),
    ):
        name = f"of_nodes_{command.lower()}"
        yield f"DROP POLICY IF EXISTS {name} ON {table};"
        yield f"CREATE POLICY {name} ON {table} AS RESTRICTIVE FOR {command} TO {role} {rule};"


def _guard_versions(schema: str) -> Iterator[str]:
    """Earlier versions of jobs lie among other records, and what they say is run too."""
    assert any(table.name == "other" for table in TABLES)
    table, is_version = f"{schema}.other", "substr(key, 1, 1) = 'V'::bytea"
    roles = f"{schema}_node, {schema}_operator, {schema}_reader"
    yield "-- Earlier versions of jobs are definitions too."
    yield f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;"
    for name, rule in (
        ("anybody_reads", f"FOR SELECT TO {roles} USING (true)"),
        ("no_versions", f"FOR ALL TO {schema}_node, {schema}_operator USING (NOT ({is_version}))"),
        ("versions_of_nodes", f"FOR ALL TO {schema}_node USING ({is_version} AND {_OF_A_NODE})"),
    ):
        yield f"DROP POLICY IF EXISTS {name} ON {table};"
        yield f"CREATE POLICY {name} ON {table} {rule};"
