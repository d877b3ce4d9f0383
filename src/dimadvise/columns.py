"""Columns, arrays and fields: which of them holds the vectors, which names the rows, and what to do
where neither is plain.
"""

from collections.abc import Mapping, Sequence

from dimadvise.files import NoMatrixError
from repro.types import InputError

NAMING = ("id", "ids", "_id", "uuid", "doc_id", "docid", "document_id", "custom_id", "key")
"""Columns and arrays, in any case, of which the first that is there names the rows."""
SPREAD = 8  # Columns of numbers from which on they look like the numbers of one vector
TENSOR = "a tensor of shape"
LISTED = 12  # Columns that a message lists, at most


def naming(columns: Sequence[str]) -> str:
    """The column that names rows; empty where none does."""
    for name in NAMING:
        for column in columns:
            if column.lower() == name:
                return column
    return ""


def named_by(columns: Mapping[str, bool], vectors: str) -> tuple[str, str]:
    """The column that names rows, and where none does one by such a name that holds no ids.

    `columns` says of each whether its values are ids; that of the `vectors` is not asked.
    """
    others = {name: are_ids for name, are_ids in columns.items() if name != vectors}
    id_column = naming([name for name, are_ids in others.items() if are_ids])
    return id_column, "" if id_column else naming(list(others))


def chosen(
    column: str,
    fitting: Sequence[str],
    columns: Sequence[str],
    where: str,
    expected: str,
    hint: str = "",
) -> str:
    """The column named, or the only one that fits; a message of another ends with the hint."""
    listed = ", ".join(columns[:LISTED])
    if len(columns) > LISTED:
        listed += f" and {len(columns) - LISTED} more"
    if column and column not in fitting:
        raise NoMatrixError(f"{where}: {column!r} is not {expected}; there are {listed}{hint}")
    if not fitting:
        raise NoMatrixError(f"{where}: none of {listed} is {expected}{hint}")
    if not column and len(fitting) > 1:
        raise InputError(f"{where}: {', '.join(fitting)} are each {expected}: name one by --column")
    return column or fitting[0]


def hint(file: str, column: str, contents: Mapping[str, str]) -> str:
    """What to do where a file holds its vectors in a form that is not read; empty if none is seen.

    `contents` says of each column what it holds: "a number", "base64", "bytes", a tensor, or else.
    """
    outer, _, inner = column.partition(".")
    if inner and outer in contents:
        steps = [f"[{step}]" if step.isdecimal() else f".{step}" for step in column.split(".")]
        way_out = f"write the vectors by themselves, jq -c '{''.join(steps)}' {file} > X.jsonl"
        return f"; fields of fields are not read: {way_out}"
    for name in [column] if column in contents else contents:
        if contents[name] in ("base64", "bytes"):
            decoded = f"base64.b64decode({name})" if contents[name] == "base64" else name
            way_out = (
                f"decode each, np.frombuffer({decoded}, '<f4'), and save the matrix by np.save"
            )
            return f"; {name} looks like {contents[name]} of numbers: {way_out}"
        if contents[name].startswith(TENSOR):
            return f"; {name} holds {contents[name]} in each row: save one vector a row"
    if sum(content == "a number" for content in contents.values()) >= SPREAD:
        way_out = "make a matrix of them, np.save('X.npy', frame[columns].to_numpy())"
        return f"; columns of single numbers are not read as one vector: {way_out}"
    return ""
