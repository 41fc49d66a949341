// docs/reference/http.md lists the routes of the table, with who may use them.

import { expect, test } from "vitest";
import { PATHS, ROUTES, type RouteName } from "../../src/http/index.ts";
import { tableRows } from "../support/source-files.ts";

test("docs/reference/http.md lists every route as it is", () => {
  const documented = tableRows("docs/reference/http.md", "name").map(
    ({ name, method, path, who, what }) =>
      [name, method, path, who, what].map((cell) => cell?.replaceAll("`", "")),
  );
  const defined = (Object.keys(PATHS) as RouteName[]).map((name) => {
    const { rule, summary } = ROUTES[name];
    const [method, path] = PATHS[name].split(" ");
    const who =
      "anyone" in rule
        ? "anyone"
        : Object.entries(rule.roles)
            .map(([role, scope]) => (scope === "own" ? `${role} (own)` : role))
            .join(", ");
    const needs =
      "anyone" in rule || rule.person !== true
        ? ""
        : rule.freshSignIn === true
          ? "; recent sign-in"
          : "; signed in";
    return [name, method, path, `${who}${needs}`, summary.replaceAll("`", "")];
  });
  expect(documented).toEqual(defined);
});
