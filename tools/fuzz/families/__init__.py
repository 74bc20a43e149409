"""The families, by name. A new one is a module here and a line below."""

from call import Family

from .arguments import Arguments

FAMILIES: dict[str, Family] = {family.name: family for family in (Arguments(),)}
