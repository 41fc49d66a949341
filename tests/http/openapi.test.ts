// The document says what the server does, and the server answers what the document says.

import { expect, test } from "vitest";
import { requestOf } from "../../src/client/create-client.ts";
import { PATHS, ROUTES, type RouteName } from "../../src/http/index.ts";
import { compileJsonSchema } from "../../src/tools/json-schema/compile-json-schema.ts";
import type { JsonObject } from "../../src/util/json.ts";
import { credentials, openHttp, raw, subjectOf } from "./http-world.ts";
import { makeRecords, sampleInput } from "./matrix-samples.ts";

interface Operation {
  readonly operationId: string;
  readonly security: readonly object[];
  readonly parameters: readonly { readonly in: string; readonly name: string }[];
  readonly requestBody?: unknown;
  readonly responses: Record<string, { content: Record<string, { schema?: JsonObject }> }>;
}

async function document(url: string): Promise<Map<string, Operation>> {
  const sent = await raw(`${url}/v1/openapi.json`);
  const { openapi, paths } = JSON.parse(sent.text) as {
    openapi: string;
    paths: Record<string, Record<string, Operation>>;
  };
  expect(openapi).toBe("3.1.0");
  return new Map(
    Object.values(paths).flatMap((path) =>
      Object.values(path).map((operation) => [operation.operationId, operation] as const),
    ),
  );
}

test("OpenAPI: has every route with its names and roles, and a key where state changes", async () => {
  const { server } = await openHttp();
  const operations = await document(server.url);
  expect([...operations.keys()].toSorted()).toEqual(Object.keys(PATHS).toSorted());
  for (const [name, operation] of operations) {
    const route = ROUTES[name as RouteName];
    const params = [...PATHS[name as RouteName].matchAll(/:(\w+)/g)].map(([, param]) => param);
    const inPath = operation.parameters.filter((one) => one.in === "path").map((one) => one.name);
    expect(inPath, name).toEqual(params);
    expect(operation.security.length > 0, name).toBe(!("anyone" in route.rule));
    const changes = PATHS[name as RouteName].startsWith("POST") && route.kind === "json";
    expect(
      operation.parameters.some((one) => one.name === "Idempotency-Key"),
      name,
    ).toBe(changes);
  }
});

test("OpenAPI: responses of the routes match its schemas", async () => {
  const world = await openHttp();
  const operations = await document(world.server.url);
  let checked = 0;
  for (const name of Object.keys(PATHS) as RouteName[]) {
    const route = ROUTES[name];
    if (route.kind !== "json" || "anyone" in route.rule) continue;
    const role = (["reviewer", "operator", "agent", "admin", "auditor"] as const).find(
      (one) => "roles" in route.rule && one in route.rule.roles,
    );
    if (role === undefined) continue;
    const owner =
      role === "operator" && route.rule.roles.operator === "own"
        ? subjectOf("operator")
        : "agent:one";
    const records = await makeRecords(world, "acme", owner);
    const { method, address, body } = requestOf(name, sampleInput(name, records));
    const headers = credentials(await world.pass("acme", role));
    const sent = await raw(`${world.server.url}${address}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
    });
    const schema =
      operations.get(name)?.responses[String(sent.status)]?.content["application/json"]?.schema;
    if (sent.status >= 400 || schema === undefined) continue;
    const problems = compileJsonSchema(schema)(JSON.parse(sent.text));
    expect(problems, name).toEqual([]);
    expect(route.answer.safeParse(JSON.parse(sent.text)).success, name).toBe(true);
    checked += 1;
    if (name === "switch.stop") await world.gates.acme.killSwitch.resume("test", { actor: "test" });
  }
  expect(checked).toBeGreaterThan(30);
  expect(world.problems).toEqual([]);
});

test("OpenAPI: a problem has code, retry advice and summary of the error table", async () => {
  const { server } = await openHttp();
  const sent = await raw(`${server.url}/v1/me`);
  expect(sent.status).toBe(401);
  expect(sent.headers["content-type"]).toBe("application/problem+json");
  expect(JSON.parse(sent.text)).toMatchObject({
    type: "urn:sallyport:error:unauthenticated",
    status: 401,
    code: "unauthenticated",
    retry: "never",
  });
});
