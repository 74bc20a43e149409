"""The documentation as a site: `tools/site/build.sh` builds it with these settings.

The pages are the Markdown of this folder, which is read in the repository as well, the
docstrings of the public names (`api/`) and the programs of `gallery/`.
"""

import os
import sys
import warnings
from pathlib import Path

import matplotlib

import ordinal

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tools/site"), str(ROOT / "tools")]

from pictures import use_style  # noqa: E402

project = "ordinal"
version = release = ordinal.__version__
html_title = f"ordinal {version}"
html_short_title = "ordinal"
html_show_copyright = False

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "cards",  # these are files of tools/site
    "docstrings",
    "figures",
    "keywords",
    "mathml",
    "names",
    "outside",
    "overview",
]
exclude_patterns = ["_build", "gallery"]
templates_path = ["_templates"]

# every name in single backticks is a link where it is one of ours, else it is code
default_role = "name"
nitpicky = True
nitpick_ignore_regex = [("py:class", r"ordinal\._.*")]  # types that have no page
suppress_warnings = ["config.cache"]  # the gallery's settings hold a function

# Markdown: anchors as the repository's host makes them
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]  # $...$, which the host sets as well
myst_links_external_new_tab = False

# API: a page for each name, made by the templates in _templates/autosummary
autosummary_generate = True
autosummary_ignore_module_all = False
autosummary_imported_members = True
autodoc_typehints = "none"  # the numpydoc sections state types in words
autodoc_member_order = "groupwise"
autodoc_inherit_docstrings = True
toc_object_entries_show_parents = "hide"  # the column of contents is narrow
numpydoc_show_class_members = False  # the template of a class shows them
numpydoc_class_members_toctree = False
# What must hold of every docstring: it exists, its sections have names that are known
# and stand in order, parameters are written as name : type. Not asked for are examples
# and cross-references of every method, and parameters one by one where a line says that
# all are those of another function.
numpydoc_validation_checks = {
    "GL03", "GL05", "GL06", "GL07", "GL08", "GL09", "GL10",
    "PR05", "PR06", "PR09", "PR10", "RT05", "SS01", "SS04",
}  # fmt: skip
numpydoc_validation_exclude = {
    r"__version__$", r"^ordinal\.sklearn\.", r"^ordinal\.kernels\.\w+\.",
}  # fmt: skip

# the gallery runs in the build, which ends where an example fails or a fit of one warns
matplotlib.use("agg")
for category in vars(ordinal.exceptions).values():
    if isinstance(category, type) and issubclass(category, Warning):
        warnings.filterwarnings("error", category=category)


def draw_in_one_style(gallery_conf, file):
    use_style()


sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["examples"],
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "image_srcset": ["2x"],
    "reset_modules": ("matplotlib", draw_in_one_style),
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,  # times differ from build to build
    "write_computation_times": False,
    "reference_url": {"ordinal": None},
    "doc_module": ("ordinal",),
    "backreferences_dir": None,
    "remove_config_comments": True,
    "default_thumb_file": None,
}

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/mark.svg"
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system is
html_baseurl = os.environ.get("SITE_URL", "")  # nobody has given one yet
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
# pages without a section above them
html_sidebars = {"index": [], "installation": [], "start_here": []}
html_theme_options = {
    "logo": {
        "text": "ordinal",
        "image_light": "_static/mark.svg",
        "image_dark": "_static/mark.svg",
    },
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 8,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["footer.html"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
