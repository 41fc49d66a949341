import { expect, test } from "vitest";
import { forPeople } from "./errors.ts";

test.each([
  [
    '"x" has neither a dry run nor an undo. Check the input once more, and prefer a tool with a dry run where one does the same.',
    '"x" has neither a dry run nor an undo.',
  ],
  [
    "Not executed: it waits for approval as decision d-1. Go on with something else, or ask later.",
    "Not executed: it waits for approval as decision d-1.",
  ],
  [
    '"x" was not called: its input does not fit the schema.\n- /sku is missing\nCorrect these places and call it again.',
    '"x" was not called: its input does not fit the schema.\n- /sku is missing',
  ],
  [
    "It is not known whether this happened (timeout). Do not repeat it: a person has to look first.",
    "It is not known whether this happened (timeout).",
  ],
  ["Nightline does not answer today. Take another carrier.", "Nightline does not answer today."],
  [
    "Not executed: ada said no. too dear Change the call or take another way.",
    "Not executed: ada said no. too dear Change the call or take another way.",
  ],
  [
    "Not executed: ada said no. Too dear. Change the call or take another way.",
    "Not executed: ada said no. Too dear.",
  ],
  ["Propose it again.", "Propose it again."],
  ["R-1 is paid", "R-1 is paid"],
  ["", ""],
])("%j is shown to people as %j [W4]", (text, wanted) => {
  expect(forPeople(text)).toBe(wanted);
});
