import type { CallFacts, ResolvedResource } from "../gate/call-facts.ts";

/** Something that a call may change. What nobody can name is there too: it is the reason for most refusals. */
export type Target =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "other"; readonly id: string }
  | { readonly kind: "unknown"; readonly what: string };

/** Built-in tools that go to an address and can only read there; of any other nobody knows. */
const FETCHES: readonly string[] = ["http.fetch"];

/**
 * What a call may write, from the resources that it resolves to. Tools of the class `readonly` were vouched for by the
 * operator; any other that names no resource may write anything. What a tool says of itself as a flag is not looked at.
 */
export function writtenTargets({ tool, permissionClass, resources }: CallFacts): readonly Target[] {
  if (resources.length === 0) {
    return permissionClass === "readonly"
      ? []
      : [{ kind: "unknown", what: "something that it does not name" }];
  }
  return resources.flatMap((resource) => writtenBy(resource, tool));
}

function writtenBy(resource: ResolvedResource, tool: string): readonly Target[] {
  switch (resource.kind) {
    case "file":
      return resource.access === "write" ? [{ kind: "file", path: resource.resolved }] : [];
    case "unresolved":
      return resource.access === "write" ? [{ kind: "unknown", what: resource.path }] : [];
    case "other":
      return resource.access === "write" ? [{ kind: "other", id: resource.id }] : [];
    case "command":
      return [{ kind: "unknown", what: "whatever a command changes" }];
    case "url":
      return FETCHES.includes(tool) ? [] : [{ kind: "unknown", what: "another system" }];
  }
}

export function nameOf(target: Target): string {
  if (target.kind === "file") return target.path;
  return target.kind === "other" ? target.id : target.what;
}
