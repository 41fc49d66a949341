import type { Guard } from "../../model/validator.ts";
import { isObject, need } from "../need.ts";

/**
 * Denies decisions of the tenants that are marked true. Only a positively identified tenant is stopped: no metadata, no
 * `tenant` key or one that is not text is let through, so this guard is a block list and not an isolation boundary.
 *
 * The list is read at each question, so marking a tenant later takes effect at once. Keys are looked up as own
 * properties: a tenant that calls itself "constructor" is not found on the prototype of every list.
 */
export function tenantDenyGuard(blocked: Readonly<Record<string, boolean>> | undefined): Guard {
  const list: unknown = blocked ?? {};
  // A Map, a Set or an array has no own keys that match and would silently deny nobody.
  need(isObject(list) && isPlain(list), "tenantDenyGuard needs an object of tenants and booleans.");
  for (const [tenant, isBlocked] of Object.entries(list)) {
    need(typeof isBlocked === "boolean", `The block list needs true or false for "${tenant}".`);
  }
  return {
    allows({ metadata }) {
      if (!isObject(metadata) || !Object.hasOwn(metadata, "tenant")) return true;
      const tenant = metadata["tenant"];
      return typeof tenant !== "string" || !Object.hasOwn(list, tenant) || list[tenant] !== true;
    },
  };
}

function isPlain(list: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(list);
  return prototype === Object.prototype || prototype === null;
}
