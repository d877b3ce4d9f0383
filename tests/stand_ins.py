"""Elasticsearch and Weaviate as far as printed code asks them, by their documented forms: whatever
has another form is refused, and what is found is found by going through all rows.
"""

import json
import re
import uuid
from contextlib import contextmanager
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from types import ModuleType, SimpleNamespace

import numpy as np

SCRIPTS = {
    "cosineSimilarity(params.q, 'whole') + 1": lambda q, x: cosine(q, x) + 1,
    "1 / (1 + l2norm(params.q, 'whole'))": lambda q, x: 1 / (1 + np.linalg.norm(q - x)),
    "double s = dotProduct(params.q, 'whole'); return s < 0 ? 1 / (1 - s) : s + 1": lambda q, x: (
        1 / (1 - q @ x) if q @ x < 0 else q @ x + 1
    ),
}
FIELD = {"type", "dims", "element_type", "index", "similarity", "index_options"}
LARGEST = 100 * 2**20  # Of a request to Elasticsearch, unless it is set up otherwise


def cosine(q, x):
    return q @ x / (np.linalg.norm(q) * np.linalg.norm(x))


NEARNESS = {
    "cosine": cosine,
    "max_inner_product": lambda q, x: q @ x,
    "dot": lambda q, x: q @ x,
    "l2_norm": lambda q, x: -np.linalg.norm(q - x),
    "l2-squared": lambda q, x: -((q - x) ** 2).sum(),
}


class Items:
    """An index of Elasticsearch: what it is told, and what it answers."""

    def __init__(self, mapping):
        assert set(mapping) == {"mappings"} and set(mapping["mappings"]) == {"properties"}
        self.fields = mapping["mappings"]["properties"]
        for field in self.fields.values():
            assert field["type"] in ("keyword", "dense_vector")
            if field["type"] == "dense_vector":
                self.check_field(field)
        self.waiting, self.rows = {}, {}

    def check_field(self, field):
        assert set(field) <= FIELD and 1 <= field["dims"] <= 4096
        if field.get("index", True):
            assert field["similarity"] in NEARNESS
            assert field["index_options"] == {"type": "hnsw"}, "its own choice has fewer bits"
        else:
            assert "similarity" not in field
        if field.get("element_type") == "bit":
            assert field["dims"] % 8 == 0 and field["similarity"] == "l2_norm"

    def vector(self, name, value):
        """As it is compared; signs as bits."""
        field = self.fields[name]
        kind, dims = field.get("element_type", "float"), field["dims"]
        if kind == "bit":
            bits = np.unpackbits(np.frombuffer(bytes.fromhex(value), np.uint8))
            assert len(bits) == dims
            return bits.astype(np.float64)
        assert len(value) == dims
        if kind == "byte":
            assert all(isinstance(each, int) and -128 <= each <= 127 for each in value)
        else:
            assert all(isinstance(each, float) for each in value)
        return np.array(value, np.float64)

    def bulk(self, body):
        assert len(body) <= LARGEST and body.endswith("\n")
        lines = [json.loads(line) for line in body.splitlines()]
        assert len(lines) % 2 == 0
        for action, row in zip(lines[::2], lines[1::2], strict=True):
            assert set(action) == {"index"} and set(action["index"]) == {"_id"}
            assert isinstance(action["index"]["_id"], str) and set(row) == set(self.fields)
            for name in set(row) - {"id"}:
                self.vector(name, row[name])
            self.waiting[action["index"]["_id"]] = row
        return {"errors": False, "items": [{"index": {"status": 201}}] * (len(lines) // 2)}

    def refresh(self, body):
        assert not body
        self.rows = dict(self.waiting)
        return {"_shards": {"failed": 0}}

    def search(self, body):
        asked = json.loads(body)
        assert set(asked) <= {"knn", "rescore", "size", "_source"} and asked["_source"] == ["id"]
        knn, size = asked["knn"], asked["size"]
        assert set(knn) == {"field", "query_vector", "k", "num_candidates"}
        assert knn["k"] <= knn["num_candidates"] <= 10_000
        name = knn["field"]
        q, near = self.vector(name, knn["query_vector"]), NEARNESS[self.fields[name]["similarity"]]
        scores = {id: near(q, self.vector(name, row[name])) for id, row in self.rows.items()}
        found = sorted(scores, key=lambda id: -scores[id])[: knn["k"]]
        if "rescore" in asked:
            found = self.rescored(asked["rescore"], found)
        hits = [{"_id": id, "_source": {"id": self.rows[id]["id"]}} for id in found[:size]]
        return {"hits": {"hits": hits}}

    def rescored(self, rescore, found):
        order = rescore["query"]
        assert set(rescore) == {"window_size", "query"} and rescore["window_size"] == len(found)
        assert set(order) == {"rescore_query", "query_weight", "rescore_query_weight"}
        assert (order["query_weight"], order["rescore_query_weight"]) == (0, 1)
        scored = order["rescore_query"]["script_score"]
        assert scored["query"] == {"match_all": {}} and set(scored["script"]) == {
            "source",
            "params",
        }
        score, q = SCRIPTS[scored["script"]["source"]], np.array(scored["script"]["params"]["q"])
        scores = {id: score(q, self.vector("whole", self.rows[id]["whole"])) for id in found}
        assert min(scores.values()) >= 0, "Lucene knows no scores below"
        return sorted(found, key=lambda id: -scores[id])


@contextmanager
def elasticsearch(printed):
    """The address of an index that was made by the request that is printed before the Python."""
    made = re.match(r"PUT /items\n(.*?)\nPOST /items/_search\n", printed, re.DOTALL)
    items = Items(json.loads(made[1]))
    ways = {
        "/items/_bulk": items.bulk,
        "/items/_refresh": items.refresh,
        "/items/_search": items.search,
    }

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            try:
                assert self.headers["Content-Type"] == "application/json"
                status, told = 200, ways[self.path](body)
            except (AssertionError, KeyError, TypeError, ValueError) as refused:
                status, told = 400, {"error": repr(refused)}
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(told).encode())

        def log_message(self, *_):
            """Nothing is said."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class VectorDistances(StrEnum):
    """The client's names of similarities."""

    COSINE = "cosine"
    DOT = "dot"
    L2_SQUARED = "l2-squared"


class Collection:
    """A collection of Weaviate. Its methods take what those of the client 4.24 take, by the same
    names; what it has more of is left out.
    """

    def __init__(self, properties, vectors):
        assert [set(vars(each)) for each in properties] == [{"name", "data_type"}]
        assert "id" not in {each.name for each in properties}, "a name that it keeps to itself"
        self.properties = {each.name for each in properties}
        self.vectors = {each.name: each.index for each in vectors}
        self.rows, self.failed_objects = {}, []
        self.batch = self.query = self

    @contextmanager
    def fixed_size(self, batch_size=100, concurrent_requests=2):
        yield self

    def add_object(self, properties=None, references=None, uuid=None, vector=None):
        assert set(properties) == self.properties and set(vector) == set(self.vectors)
        assert all(isinstance(x, float) for row in vector.values() for x in row)
        self.rows[uuid] = SimpleNamespace(properties=properties, vector=vector)

    def near_vector(self, near_vector, *, limit=None, target_vector=None, include_vector=False):
        similarity, q = self.vectors[target_vector].distance_metric.value, np.array(near_vector)
        near = NEARNESS[similarity]
        rows = list(self.rows.values())
        rows.sort(key=lambda row: -near(q, np.array(row.vector[target_vector])))
        given = include_vector or []
        return SimpleNamespace(
            objects=[
                SimpleNamespace(
                    properties=row.properties,
                    vector={name: row.vector[name] for name in given},
                )
                for row in rows[:limit]
            ]
        )


def weaviate():
    """Modules of Weaviate's client by name."""

    def self_provided(*, name=None, quantizer=None, vector_index_config=None):
        assert vector_index_config.quantizer == "none", "its own choice has fewer bits"
        return SimpleNamespace(name=name, index=vector_index_config)

    def hnsw(*, distance_metric=None, ef=None, quantizer=None):
        assert isinstance(distance_metric, VectorDistances) and isinstance(ef, int)
        return SimpleNamespace(distance_metric=distance_metric, quantizer=quantizer)

    def flat(*, distance_metric=None, quantizer=None):
        return SimpleNamespace(distance_metric=distance_metric, quantizer=quantizer)

    def create(name, *, properties=None, vector_config=None):
        assert name[0].isupper()
        return Collection(properties, vector_config)

    def property_of(*, name, data_type):
        return SimpleNamespace(name=name, data_type=data_type)

    def uuid_of(identifier):
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, str(identifier)))

    def local():
        return SimpleNamespace(collections=SimpleNamespace(create=create))

    quantizer = SimpleNamespace(none=lambda: "none")
    contents = {
        "weaviate": {"connect_to_local": local},
        "weaviate.classes": {},
        "weaviate.classes.config": {
            "Configure": SimpleNamespace(
                VectorIndex=SimpleNamespace(hnsw=hnsw, flat=flat, Quantizer=quantizer),
                Vectors=SimpleNamespace(self_provided=self_provided),
            ),
            "DataType": SimpleNamespace(INT="int", TEXT="text"),
            "Property": property_of,
            "VectorDistances": VectorDistances,
        },
        "weaviate.util": {"generate_uuid5": uuid_of},
    }
    modules = {}
    for name, names in contents.items():
        modules[name] = ModuleType(name)
        vars(modules[name]).update(names)
    return modules
