from __future__ import annotations

from typing import Any

import msgspec
import pytest

from clew.catalog.formats.openapi import MAX_OPERATIONS
from clew.catalog.formats.types import OPENAPI
from clew.errors import FormatError
from tests.catalog.formats.documents import paths, read, walk

PETS = """
openapi: 3.0.3
info: {title: Pet shop, version: 1.2.0, description: "Sells pets.\\n\\nAnd food."}
servers: [{url: https://pets.example.org/v1}]
paths:
  /pets:
    get:
      operationId: listPets
      summary: List all pets
      tags: [pets]
      parameters:
        - {name: limit, in: query, description: How many, schema: {type: integer}}
        - $ref: '#/components/parameters/Trace'
      responses:
        200:
          description: A page
          content: {application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Pet'}}}}
        default: {$ref: '#/components/responses/Error'}
    post:
      operationId: createPet
      deprecated: true
      requestBody: {$ref: '#/components/requestBodies/Pet'}
      responses: {}
  /pets/{petId}:
    parameters: [{name: petId, in: path, required: true, schema: {type: string}}]
    get: {summary: One pet, description: By its id.}
components:
  parameters:
    Trace: {name: X-Trace, in: header, schema: {type: string}}
  responses:
    Error: {description: It failed}
  requestBodies:
    Pet:
      content:
        application/json: {schema: {$ref: '#/components/schemas/Pet'}}
        application/xml: {schema: {$ref: '#/components/schemas/Pet'}}
  schemas:
    Pet:
      type: object
      required: [name]
      properties:
        name: {type: string, description: What it is called}
        parent: {$ref: '#/components/schemas/Pet'}
        born: {type: string, example: 2026-01-02}
        tags: {type: array, items: {type: string}}
"""


@pytest.mark.req("ERN-18")
def test_operations_are_resources() -> None:
    root = read(PETS, OPENAPI, id="api/pets.yaml", base="docs")
    assert [(node.path, node.name, node.type) for node in walk([root])] == [
        ("docs/api/pets.yaml", "Pet shop", "api"),
        ("docs/api/pets.yaml/pets/get", "listPets", "operation"),
        ("docs/api/pets.yaml/pets/post", "createPet", "operation"),
        ("docs/api/pets.yaml/pets/%7BpetId%7D/get", "GET /pets/{petId}", "operation"),
    ]
    assert root.description == "Sells pets."
    assert root.content == "Pet shop 1.2.0\n\nSells pets.\n\nAnd food.\n\nhttps://pets.example.org/v1"
    assert root.children[0].description == "GET /pets: List all pets"
    assert root.children[0].metadata == {"method": "get", "path": "/pets", "tags": ["pets"]}


def test_parameters_and_responses_are_shown_with_references_resolved() -> None:
    assert read(PETS, OPENAPI).children[0].content == (
        "GET /pets\n\nOperation listPets\n\nList all pets\n\n"
        "Parameters:\n- limit (query, integer): How many\n- X-Trace (header, string)\n\n"
        "Responses:\n- 200 (array of Pet): A page\n- default: It failed"
    )


def test_the_request_body_is_shown_once_with_its_properties() -> None:
    assert read(PETS, OPENAPI).children[1].content == (
        "POST /pets (deprecated)\n\nOperation createPet\n\n"
        "Request body:\n- application/json (Pet)\n"
        "  - name (string, required): What it is called\n  - parent (Pet)\n  - born (string)\n"
        "  - tags (array of string)\n- application/xml (Pet)"
    )


def test_parameters_of_the_path_belong_to_each_operation() -> None:
    assert read(PETS, OPENAPI).children[2].content == (
        "GET /pets/{petId}\n\nOne pet\n\nBy its id.\n\nParameters:\n- petId (path, string, required)"
    )


def test_json_and_yaml_say_the_same() -> None:
    import yaml

    body = msgspec.json.encode(yaml.safe_load(PETS.replace("2026-01-02", "x").replace("200:", "'200':")))
    written = read(PETS.replace("2026-01-02", "x"), OPENAPI)
    assert read(body, OPENAPI) == written
    assert read(b"\xef\xbb\xbf" + body, OPENAPI) == written


def test_swagger_2_is_read() -> None:
    body: dict[str, Any] = {
        "swagger": "2.0",
        "info": {"title": "Old", "version": "1"},
        "host": "old.example.org",
        "basePath": "/v2",
        "paths": {
            "/pets": {
                "post": {
                    "parameters": [
                        {"in": "body", "name": "pet", "schema": {"$ref": "#/definitions/Pet"}},
                        {"in": "query", "name": "dry", "type": "boolean"},
                    ],
                    "responses": {"200": {"description": "ok", "schema": {"$ref": "#/definitions/Pet"}}},
                }
            }
        },
        "definitions": {
            "Pet": {"allOf": [{"$ref": "#/definitions/Named"}, {"properties": {"age": {"type": "integer"}}}]},
            "Named": {"properties": {"name": {"type": "string"}}},
        },
    }
    root = read(body, OPENAPI)
    assert root.content == "Old 1\n\nold.example.org/v2"
    assert root.children[0].content == (
        "POST /pets\n\nParameters:\n- dry (query, boolean)\n\n"
        "Request body:\n- body (Pet)\n  - name (string)\n  - age (integer)\n\nResponses:\n- 200 (Pet): ok"
    )


def test_version_3_1_is_read_with_webhooks_and_types_in_lists() -> None:
    schema = {
        "properties": {"a": {"type": ["string", "null"]}, "b": {"oneOf": [{"$ref": "#/x/Cat"}, {"type": "string"}]}}
    }
    body = {
        "openapi": "3.1.0",
        "webhooks": {"new/pet": {"post": {"requestBody": {"content": {"application/json": {"schema": schema}}}}}},
    }
    root = read(body, OPENAPI, id="a.json")
    assert paths(root) == ["a.json", "a.json/webhooks/new/pet/post"]
    assert "  - a (string or null)\n  - b (one of Cat, string)" in root.children[0].content


def test_references_in_circles_end() -> None:
    body = {
        "openapi": "3.0.0",
        "paths": {"/a": {"$ref": "#/paths/~1b"}, "/b": {"$ref": "#/paths/~1a"}, "/c": {"post": {"$ref": "#"}}},
    }
    body["paths"]["/c"]["post"] = {  # type: ignore[index]
        "requestBody": {"$ref": "#/components/requestBodies/Self"},
        "parameters": [
            {"$ref": "#/components/parameters/Self"},
            {"$ref": "http://evil.example/x"},
            {"$ref": "#/no/where"},
        ],
    }
    body["components"] = {
        "requestBodies": {"Self": {"$ref": "#/components/requestBodies/Self"}},
        "parameters": {"Self": {"$ref": "#/components/parameters/Self"}},
    }
    assert paths(read(body, OPENAPI))[1:] == ["guide.md/c/post"]


def test_a_yaml_bomb_is_refused_before_it_goes_off() -> None:
    levels = "\n".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]" for n in range(30))
    with pytest.raises(FormatError, match="uses a YAML alias; write the value out instead"):
        read(f"openapi: 3.0.0\na0: &a0 [x]\n{levels}\n", OPENAPI)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("openapi: 4.0.0\npaths: {}", "is not OpenAPI 2.0, 3.0 or 3.1"),
        ("info: {}", "`openapi` or `swagger` must say the version"),
        ("- a", "an object at the top was expected"),
        ("", "an object at the top was expected"),
        ("a: [", "is not YAML: did not find expected node content in line"),
        ("a: !!python/object/apply:os.system [ls]", "uses a YAML tag"),
        ("openapi: 3.0.0\na: " + "[" * 500 + "]" * 500, "goes more than 100 levels deep"),
        ("openapi: 3.0.0\na:\n" + "- x\n" * 500_000, "has more than 400,000 values"),
        ("openapi: 3.0.0\n# " + "x" * 9_000_000, "over the limit of 8,000,000"),
        ("openapi: 3.0.0\npaths: []\nx: 1\n---\ny", "is not YAML: but found another document"),
        ("openapi: 3.0.0\npaths: [a]", "paths must be an object"),
        ("openapi: 3.0.0\npaths: {/a: {get: [b]}}", "paths./a.get must be an object"),
        ('{"openapi": ', "is not JSON, which an OpenAPI document has to be"),
    ],
)
def test_a_document_that_is_not_openapi_is_refused(body: str, reason: str) -> None:
    with pytest.raises(FormatError, match=reason) as caught:
        read(body, OPENAPI)
    assert "\n" not in str(caught.value)


def test_odd_values_within_an_operation_do_no_harm() -> None:
    operation = {
        "operationId": 7,
        "summary": ["x"],
        "tags": "pets",
        "parameters": [None, 3, {"name": {}, "in": [], "schema": "x"}],
        "requestBody": [1],
        "responses": {"200": None, "201": "made"},
    }
    root = read({"openapi": "3.0.0", "info": [], "servers": {}, "paths": {"": {"get": operation}}}, OPENAPI)
    assert paths(root) == ["guide.md", "guide.md/get"]
    assert root.children[0].name == "7"


def test_a_long_text_that_all_operations_share_is_not_multiplied() -> None:
    item = {"get": {"description": "x" * 100_000, "summary": "y" * 100_000}}
    body = {
        "openapi": "3.0.0",
        "paths": {f"/p{number}": {"$ref": "#/components/pathItems/A"} for number in range(MAX_OPERATIONS // 10)},
        "components": {"pathItems": {"A": item}},
    }
    root = read(body, OPENAPI)
    assert max(sum(len(node.content) for node in walk([child])) for child in root.children) <= 20_000


def test_too_many_operations_are_refused() -> None:
    body = {"openapi": "3.0.0", "paths": {f"/p{number}": {"get": {}} for number in range(MAX_OPERATIONS + 1)}}
    with pytest.raises(FormatError, match="has more than 2,500 operations"):
        read(body, OPENAPI)
