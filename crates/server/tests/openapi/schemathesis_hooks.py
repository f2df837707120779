"""What schemathesis does not know by itself: NDJSON, one item in each line."""

import json

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def to_lines(_, items):
    # What is no list is sent as it is: the server must bear that, too.
    if not isinstance(items, list):
        return items if isinstance(items, bytes) else json.dumps(items).encode()
    return b"".join(json.dumps(item).encode() + b"\n" for item in items)


@schemathesis.deserializer("application/x-ndjson")
def from_lines(_, response):
    return [json.loads(line) for line in response.content.splitlines()]
