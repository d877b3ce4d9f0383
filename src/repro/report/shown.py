"""What a page shows: a piece in two forms, and the sentence where there is nothing to show."""

from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Shown:
    """A piece of a page, as HTML for the browser and as Markdown for print."""

    html: str
    markdown: str

    def _repr_html_(self) -> str:
        return self.html

    def _repr_markdown_(self) -> str:
        return self.markdown


def nothing(wanted: str) -> Shown:
    """What stands in place of a table or a figure that the reader's parameters leave empty.

    Args:
        wanted: its title, or why it is empty.
    """
    said = f"Nothing to show under these parameters{': ' if wanted else ''}{wanted.rstrip('.')}."
    return Shown(f'<p class="nothing">{escape(said)}</p>', said)
