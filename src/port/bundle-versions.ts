import type { Preview } from "../model/approval.ts";
import type { Decision } from "../model/decision.ts";
import type { Operation } from "../model/operation.ts";
import type { JsonObject } from "../util/json.ts";
import type { PlannedCall } from "./action.ts";
import { whileLooking } from "./looking-call.ts";
import { pinnedTool } from "./pinned-tool.ts";
import type { PreviewParts } from "./preview.ts";

/** The versions under which the calls of a decision may run, while it is carried out. */
export interface BundleVersions {
  /** As it was shown, or as the calls before it have left it. */
  expected(step: number): string;
  /** Looks at the targets of the later calls, right before this one is made, and gives what is to be called right after. */
  watch(step: number): Promise<() => Promise<void>>;
  /** This call is done: what it changed of the later calls' targets is expected from now on. */
  done(step: number, operation: Operation): void;
}

/**
 * What changed during a call of the bundle was changed by it; what changed between two of them was changed by somebody else,
 * and the later call does not run. A target that could not be looked at stays as it was shown.
 */
export function bundleVersions(
  decision: Decision,
  calls: readonly PlannedCall[],
  shown: { readonly preview: Preview; readonly definitions: readonly JsonObject[] },
  parts: PreviewParts,
): BundleVersions {
  const { stateVersion } = shown.preview;
  const expected = calls.map((_, step) =>
    Array.isArray(stateVersion) ? String(stateVersion[step] ?? "") : "",
  );
  let current: { readonly step: number; readonly after: ReadonlyMap<number, string> } | undefined;

  /** By step; without those that could not be looked at. */
  async function look(steps: readonly number[]): Promise<ReadonlyMap<number, string>> {
    const found = new Map<number, string>();
    await Promise.all(
      steps.map(async (step) => {
        const version = await versionOf(step).catch(() => undefined);
        if (version !== undefined) found.set(step, version);
      }),
    );
    return found;
  }

  async function versionOf(step: number): Promise<string | undefined> {
    const call = calls[step];
    if (call === undefined) return undefined;
    const pinned = pinnedTool(call, shown.definitions[step], parts.registry);
    if (!pinned.fits) return undefined;
    const { tool } = pinned;
    const { input, workingDirectory, places, callId } = call;
    const { store, judging } = parts;
    const facts = { tenant: store.tenant, sessionId: decision.sessionId, callId };
    return whileLooking(
      { ...facts, input, workingDirectory, places },
      judging.timers,
      async (looking) => (await tool.stateVersion?.(looking)) ?? "",
    );
  }

  return {
    expected: (step) => expected[step] ?? "",
    async watch(step) {
      const later = [...calls.keys()].slice(step + 1);
      const before = await look(later);
      const asExpected = later.filter((one) => before.get(one) === expected[one]);
      return async () => {
        const after = await look(asExpected);
        current = { step, after };
      };
    },
    done(step, { stateVersion: own }) {
      // A call that left its own target as it was has not changed anybody else's.
      const isUnchanged = own !== "" && own === expected[step];
      const after = current?.step === step && !isUnchanged ? current.after : [];
      for (const [later, version] of after) expected[later] = version;
      current = undefined;
    },
  };
}
