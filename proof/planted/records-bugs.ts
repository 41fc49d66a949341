import type { Bug } from "./bug.ts";

/** Records, standing rules, rollback and what people decide. */
export const RECORDS_BUGS: readonly Bug[] = [
  {
    name: "plain-hash-in-log",
    what: "the log holds the plain hash of contents, which gives short secrets away",
    file: "src/store/tenant-engine.ts",
    right:
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text
      "return ({ field, subject }, sha256) => hmacSha256Hex(key, `${field}\\n${subject}\\n${sha256}`);",
    wrong: 'return (_, sha256) => (key === "" ? hmacSha256Hex(key, sha256) : sha256);',
    caughtBy: { file: "tests/audit/low-entropy.test.ts", title: "four-digit pin" },
  },
  {
    name: "session-cut-at-one-page",
    what: "the decisions of a session are listed up to the first thousand",
    file: "src/store/tenant-engine.ts",
    right: "    afterOrd = next;",
    wrong: "    afterOrd = undefined;",
    caughtBy: { file: "tests/gate/thousandth-row.test.ts", title: "does not end at a page" },
  },
  {
    name: "machine-verdict-not-kept",
    what: "what the business validator said is not kept with the decision that a person decides",
    file: "src/store/decisions.ts",
    right: "{ asked: 1, unasked: null, ...kept }",
    wrong: "{ asked: 1, unasked: null }",
    caughtBy: { file: "tests/gate/machine-verdict.test.ts", title: "it is on the record" },
  },
  {
    name: "machine-verdict-not-compared",
    what: "a call runs although the machine's verdict on its decision is not the one that was shown",
    file: "src/gate/run.ts",
    right: '(machine.validator === "" || isDeepStrictEqual(machine, preview.machine)) &&',
    wrong: "",
    caughtBy: { file: "tests/gate/tampering.test.ts", title: "in memory" },
  },
  {
    name: "rule-by-spelling",
    what: "a standing rule serves its author under another spelling",
    file: "src/policy/review-rules.ts",
    right: "if (askers.has(foldName(madeBy))) return false;",
    wrong: "if (call.askers.includes(madeBy)) return false;",
    caughtBy: { file: "tests/gate/standing-rule-names.test.ts", title: "never serves its author," },
  },
  {
    name: "operations-cut-at-one-page",
    what: "what a session did is listed up to the first thousand",
    file: "src/store/tenant-engine.ts",
    right: "if (rows.length < PAGE) return all;",
    wrong: "return all;",
    caughtBy: { file: "tests/http/rollback-many.test.ts", title: "behind more than 1,000 reads" },
  },
  {
    name: "decoy-without-facts",
    what: "a decoy lacks a field that every real question has",
    file: "src/gate/attention.ts",
    right: "    facts: {},\n",
    wrong: "",
    caughtBy: { file: "tests/http/decoys.test.ts", title: "no field that a reviewer" },
  },
  {
    name: "yes-lost-while-stopped",
    what: "an approval given during a stop is closed as failed",
    file: "src/gate/run.ts",
    right: "if (await context.store.killSwitch.isStopped()) return left.map(() => held(id));",
    wrong:
      'if (await context.store.killSwitch.isStopped()) { await takeBackAll(context, decision, "stopped"); return []; }',
    caughtBy: { file: "tests/gate/yes-while-stopped.test.ts", title: "is kept, and runs once" },
  },
  {
    name: "editor-approves",
    what: "whoever changed a call approves it as well",
    file: "src/gate/supersede.ts",
    right: "...(mayApprove ? [] : [edit.by])",
    wrong: "...(mayApprove ? [] : [])",
    caughtBy: {
      file: "tests/interactions/editors-and-batches.test.ts",
      title: "cannot also approve it",
    },
  },
  {
    name: "batch-of-anything",
    what: "calls that cannot be undone are approved in one request",
    file: "src/gate/decide.ts",
    right: "await checkBatch(context, list, how.veto ?? [], how.by);",
    wrong: "void checkBatch;",
    caughtBy: { file: "tests/interactions/editors-and-batches.test.ts", title: "in one request" },
  },
  {
    name: "block-seal-ignored",
    what: "the stored head of a block is replaced by one computed from its entries, so that a changed block fits",
    file: "src/model/audit-entry.ts",
    right: "link = index === packed.length - 1 ? head : entryHash(entry);",
    wrong: "link = entryHash(entry); void head;",
    caughtBy: { file: "tests/audit/blocks.test.ts", title: "before any anchor covers it" },
  },
  {
    name: "proof-of-another-head",
    what: "a proof counts although its links do not lead to its head",
    file: "src/audit/proof.ts",
    right: "head.seq === seq + links.length && head.hash === hash;",
    wrong: "head.seq === seq + links.length;",
    caughtBy: { file: "tests/audit/blocks.test.ts", title: "without the store" },
  },
];
