import { expect, test } from "vitest";
import type { GateAnswer } from "../model/finding.ts";
import { shown, shownError } from "../util/error-text.ts";
import { allow, ask, deny, joinAnswers } from "./answers.ts";

test("deny beats ask, ask beats allow, and silence asks [I-19]", () => {
  const answers = { allow: allow(), ask: ask("p", "a"), deny: deny("p", "d") };
  const joined = (...names: readonly (keyof typeof answers)[]) =>
    joinAnswers(names.map((name) => answers[name])).answer;
  expect(joined()).toBe("ask");
  expect(joined("allow")).toBe("allow");
  expect(joined("allow", "ask")).toBe("ask");
  expect(joined("ask", "deny", "allow")).toBe("deny");
});

test("an unknown answer is not consent [I-19]", () => {
  for (const odd of ["yes", "", "ALLOW", undefined, null, true]) {
    const strange = { answer: odd, findings: [] } as unknown as GateAnswer;
    expect(joinAnswers([allow(), strange]).answer).toBe("deny");
  }
});

test("untrusted text is shown on one line, printable and shortened", () => {
  expect(shown("plain")).toBe('"plain"');
  expect(shown('a"b\n\u001b[2K\u202e\u200b\ud800é')).toBe(
    '"a\\"b\\n\\u001b[2K\\u202e\\u200b\\ufffd\\u00e9"',
  );
  expect(shown("x".repeat(300))).toHaveLength(203);
  expect(shownError(new Error("boom\nboom"))).toBe('"boom\\nboom"');
  const hostile = {
    toString() {
      throw new Error("no");
    },
  };
  expect(shownError(hostile)).toContain("cannot be described");
});
