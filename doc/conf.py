# Copyright 2026 the kernel_constrained authors
# SPDX-License-Identifier: Apache-2.0
"""How Sphinx builds these pages: ``make docs``, or ``sphinx-build -W doc OUT``."""

import re
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

project = 'kernel_constrained'
author = 'the kernel_constrained authors'
copyright = f'2026, {author}'
release = re.search(r"version='([^']+)'", (REPOSITORY / 'setup.py').read_text())[1]

extensions = ['myst_parser', 'sphinx.ext.autodoc', 'sphinx.ext.napoleon', 'sphinx.ext.mathjax']
source_suffix = {'.md': 'markdown'}
exclude_patterns = ['_build']

# Pages read the same on a forge: dollars for formulas, anchors as it makes them of headings.
myst_enable_extensions = ['dollarmath', 'amsmath']
myst_heading_anchors = 4
myst_dmath_double_inline = True

# Classes by their docstrings, members in the order of the source.
autodoc_member_order = 'bysource'
autodoc_typehints = 'none'
autodoc_default_options = {'members': True, 'exclude-members': '__init__'}
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_attr_annotations = False
add_module_names = False

html_theme = 'alabaster'
html_theme_options = {
    'description': 'Constrained online learning with kernels, for robots',
    'page_width': '1160px',
    'sidebar_width': '260px',
    'fixed_sidebar': True,
    'show_powered_by': False,
}
html_static_path = ['_static']
html_show_sourcelink = False
highlight_language = 'text'


def skip(app, kind, name, member, skipped, options):
    """Leave out the fields of named tuples: the docstrings of their classes tell of them."""
    documentation = getattr(member, '__doc__', None) or ''
    return True if documentation.startswith('Alias for field') else None


def escape(app, kind, name, member, options, lines):
    """Keep the underscore at the end of what is learned, which reStructuredText takes away."""
    lines[:] = [re.sub(r'^(:(?:ivar|vartype) \w*)_:', r'\1\_:', line) for line in lines]


def name_defaults(app, kind, name, member, options, signature, returned):
    """Show a default that is made anew each time as such."""
    return (signature or '').replace('=NOTHING', '=...') or None, returned


def setup(app):
    """Connect what autodoc asks for."""
    app.connect('autodoc-skip-member', skip)
    app.connect('autodoc-process-docstring', escape, priority=900)  # after napoleon
    app.connect('autodoc-process-signature', name_defaults)
