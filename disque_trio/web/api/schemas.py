"""JSON Schemas of requests and replies, and the check of requests.

One schema serves both: the document of the API contains it (`openapi`), and `checked` refuses
values that do not match, with an explanation.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from disque_trio.observe.values import Json, raw
from disque_trio.web.problems import ProblemError

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
WHOLE: Final[Schema] = {"type": "integer"}
NUMBER: Final[Schema] = {"type": "number"}
FLAG: Final[Schema] = {"type": "boolean"}
OBJECT: Final[Schema] = {"type": "object"}
ANY: Final[Schema] = {}
TEXTS: Final[Schema] = {"type": "array", "items": TEXT}
BASE64: Final[Schema] = {
    "type": "string",
    "contentEncoding": "base64",
    "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
}
JOB_ID: Final[Schema] = {
    "type": "string",
    "pattern": "^D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-[0-9a-f]{4}$",
    "examples": ["D-8177b338-LqqjKhrCd8pvOoKUXAoQsvOn-05a1"],
}
DELIVERY: Final[Schema] = {
    "type": "string",
    "pattern": "^D-[0-9a-f]{8}-[A-Za-z0-9+/]{24}-[0-9a-f]{4}(@[0-9a-zA-Z-]{1,64})?$",
    "examples": ["D-8177b338-LqqjKhrCd8pvOoKUXAoQsvOn-05a1"],
}
"""An id, or `id@token` of a delivery."""
_EXACT: Final = 1 << 53
_CODED: Final = "_b64"


@attrs.frozen(kw_only=True)
class Field:
    """A named value of a request."""

    name: str
    about: str
    schema: Schema
    is_required: bool = False
    default: Any = None
    coded: Schema | None = None
    """The schema of `NAME_b64`, which an object may have instead: the value in base64. In a path or
    a query such a value may be any percent-encoded bytes. If None, the value must be UTF-8."""


def named(least: int = 1, most: int = 256) -> Schema:
    """Return the schema of a text of limited length."""
    return {"type": "string", "minLength": least, "maxLength": most}


def whole(least: int, most: int = _EXACT) -> Schema:
    """Return the schema of an integer within bounds."""
    return {"type": "integer", "minimum": least, "maximum": most}


def seconds(least: float, most: float) -> Schema:
    """Return the schema of a duration in seconds."""
    return {"type": "number", "minimum": least, "maximum": most}


def one_of(*words: str) -> Schema:
    """Return the schema of one of these words."""
    return {"type": "string", "enum": list(words)}


def many(items: Schema, most: int | None = None, least: int = 0) -> Schema:
    """Return the schema of a list."""
    bounds = {} if most is None else {"minItems": least, "maxItems": most}
    return {"type": "array", "items": items, **bounds}


def maybe(schema: Schema) -> Schema:
    """Return the schema of the same value or null (unknown, or none)."""
    return {"anyOf": [schema, {"type": "null"}]}


def record(**fields: Schema) -> Schema:
    """Return the schema of an object that has all of these fields, and may have more."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def by_name(values: Schema) -> Schema:
    """Return the schema of an object whose names are data."""
    return {"type": "object", "additionalProperties": values}


def closed(fields: Sequence[Field], *rules: Schema, is_loose: bool = False) -> Schema:
    """Return the schema of an object that has only these fields; with `is_loose` none of them is
    required."""
    properties: dict[str, Schema] = {}
    needed, all_of = [], [*rules]
    for each in fields:
        is_needed = each.is_required and not is_loose
        properties[each.name] = shown(each)
        if each.coded is not None:
            twin = f"{each.name}{_CODED}"
            properties[twin] = {**each.coded, "description": "the same in base64"}
            all_of.append(one_given(each.name, twin) if is_needed else _not_both(each.name, twin))
        elif is_needed:
            needed.append(each.name)
    schema: Schema = {
        "type": "object", "properties": properties, "additionalProperties": False
    }  # fmt: skip
    if needed:
        schema["required"] = needed
    return schema | (all_of[0] if len(all_of) == 1 else {"allOf": all_of} if all_of else {})


def one_given(*names: str) -> Schema:
    """Return the schema of exactly one of these names."""
    return {"oneOf": [{"required": [each]} for each in names]}


def _not_both(*names: str) -> Schema:
    return {"not": {"required": [*names]}}


def shown(field: Field) -> Schema:
    """Return the schema of a field with its description and default."""
    default = {} if field.default is None else {"default": field.default}
    return {**field.schema, "description": field.about, **default}


def checked(value: Any, schema: Schema, name: str) -> Any:
    """Return the value with the defaults of missing fields. Raise `ProblemError` with the name, the
    value and the requirement if it does not match the schema."""
    if "properties" in schema and isinstance(value, dict):
        return _checked_fields(value, schema, f"{name}." if name else "")
    if not _fits(value, schema):
        raise ProblemError.invalid(name, value, f"it must be {wanted(schema)}")
    if isinstance(value, list):
        items = schema["items"]
        return [checked(each, items, f"{name}[{at}]") for at, each in enumerate(value)]
    is_whole = any(each.get("type") == "integer" for each in schema.get("anyOf", [schema]))
    return int(value) if is_whole and isinstance(value, float) else value  # JSON has 1 and 1.0


def _checked_fields(fields: Json, schema: Schema, prefix: str) -> Json:
    known, values = schema["properties"], {}
    for name, value in fields.items():
        if name not in known:
            names = ", ".join(known) or "none"
            raise ProblemError.invalid(f"{prefix}{name}", value, f"the fields here are: {names}")
        values[name] = checked(value, known[name], f"{prefix}{name}")
    return filled(values, schema, prefix)


def filled(values: Json, schema: Schema, prefix: str = "") -> Json:
    """Return the values with the defaults of missing ones. Raise `ProblemError` if a required value
    is missing, or if a value is also given in base64."""
    known = schema["properties"]
    rules = [each["oneOf"] for each in [schema, *schema.get("allOf", ())] if "oneOf" in each]
    choices = [[each["required"][0] for each in rule] for rule in rules]
    for names in [*([each] for each in schema.get("required", ())), *choices]:
        if not values.keys() & set(names):
            what = " or ".join(f"'{prefix}{each}'" for each in names)
            raise ProblemError(
                400, "MISSING", f"{what} is missing",
                f"give it: {known[names[0]]['description']}", name=f"{prefix}{names[0]}",
            )  # fmt: skip
    for name in values:
        if f"{name}{_CODED}" in values:
            raise twice(f"{prefix}{name}", values[name], f"as '{name}' or as '{name}{_CODED}'")
    defaults = {name: each["default"] for name, each in known.items() if "default" in each}
    return {**defaults, **values}


def _fits(value: Any, schema: Schema) -> bool:
    if "anyOf" in schema:
        return any(_fits(value, each) for each in schema["anyOf"])
    return _KINDS[schema["type"]](value, schema)


def _is_text(value: Any, schema: Schema) -> bool:
    if not isinstance(value, str) or not _is_unicode(value):
        return False
    if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", math.inf):
        return False
    if "enum" in schema:
        return value in schema["enum"]
    return "pattern" not in schema or bool(re.fullmatch(schema["pattern"], value))


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _is_whole(value: Any, schema: Schema) -> bool:
    return _is_number(value, schema) and value == math.floor(value)


def _is_number(value: Any, schema: Schema) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    is_finite = isinstance(value, int) or math.isfinite(value)
    return is_finite and _is_within(value, schema)


def _is_within(value: float, schema: Schema) -> bool:
    return bool(schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf))


def _is_list(value: Any, schema: Schema) -> bool:
    """Check the type and the length; `checked` checks the items."""
    least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
    return isinstance(value, list) and least <= len(value) <= most


_KINDS: Final[Mapping[str, Callable[[Any, Schema], bool]]] = {
    "string": _is_text,
    "integer": _is_whole,
    "number": _is_number,
    "boolean": lambda value, _: isinstance(value, bool),
    "array": _is_list,
    "object": lambda value, _: isinstance(value, dict),
}


def wanted(schema: Schema) -> str:
    """Return the requirement of a schema in words."""
    if "anyOf" in schema:
        return " or ".join(wanted(each) for each in schema["anyOf"])
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if schema["type"] == "array":
        most = f" of up to {schema['maxItems']}" if "maxItems" in schema else ""
        return f"a list{most}, each {wanted(schema['items'])}"
    text = _WORDS[schema["type"]]
    if "contentEncoding" in schema:
        return f"base64{_of_length(schema)}"
    if schema.get("pattern", "").startswith("^D-"):
        return "the id of a job, such as D-8177b338-LqqjKhrCd8pvOoKUXAoQsvOn-05a1"
    if "minimum" in schema:
        return f"{text} from {schema['minimum']:,} to {schema['maximum']:,}"
    return f"{text}{_of_length(schema)}"


def _of_length(schema: Schema) -> str:
    if "maxLength" not in schema:
        return ""
    return f" of {schema['minLength']} to {schema['maxLength']} characters"


_WORDS: Final[Mapping[str, str]] = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
}


def twice(name: str, value: Any, how: str = "once") -> ProblemError:
    """Return the error for a value that is given twice."""
    return ProblemError.invalid(name, value, f"give it {how}: it occurs twice")


def read(text: str, field: Field) -> Any:
    """Parse a value of a path or a query. Raise `ProblemError`."""
    if field.coded is None:
        return checked(_read(text, field.schema), field.schema, field.name)
    checked(raw(text).decode("utf-8", "replace"), field.schema, field.name)
    return text


def _read(text: str, schema: Schema) -> Any:
    if "anyOf" in schema:
        values = (_read(text, each) for each in schema["anyOf"])
        return next((each for each in values if _fits(each, schema)), text)
    match schema["type"]:
        case "boolean":
            return {"true": True, "false": False}.get(text, text)
        case "integer" | "number" if re.fullmatch(r"-?[0-9]{1,19}(\.[0-9]{1,9})?", text):
            return float(text) if "." in text else int(text)
    return text
