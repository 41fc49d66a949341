const frozen = new WeakSet<object>();

/** Freezes plain data all the way down, for good. The value itself: give it a copy if somebody else holds it. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || frozen.has(value)) return value;
  frozen.add(value);
  for (const inner of Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}

/** True for what `deepFreeze` has frozen: it will never look different. */
export function isDeepFrozen(value: unknown): boolean {
  return typeof value !== "object" || value === null || frozen.has(value);
}
