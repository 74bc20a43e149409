"""The `ordinal` command. Imports what it needs; nothing imports it."""
