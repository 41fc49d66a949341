import { expect, test } from "vitest";
import type { NoticeFacts } from "../model/notice.ts";
import { type NotifyRoute, plannedFor } from "./route.ts";

const FACTS: NoticeFacts = {
  type: "confirm",
  tools: ["billing.refund"],
  risk: "irreversible",
  agent: "agent:a",
  sessionId: "s",
  assignedTo: "person:ada",
  deadline: "2026-11-18T20:00:00.000Z",
  outcome: "",
  by: "",
};

function planned(route: NotifyRoute, facts: Partial<NoticeFacts> = {}, at = "12:00") {
  const terms = {
    tenant: "shop",
    nowMs: Date.parse(`2026-11-18T${at}:00.000Z`),
    groupsOf: (person: string) => (person === "person:ada" ? ["finance"] : []),
  };
  const cause = {
    kind: "asked",
    interactionId: "i",
    facts: { ...FACTS, ...facts },
    nth: 0,
  } as const;
  return plannedFor(cause, [route], terms).map(({ channel, kind, afterMs }) => [
    channel,
    kind,
    afterMs / 60_000,
  ]);
}

test.each<[string, NotifyRoute, boolean]>([
  ["its tool", { to: ["c"], tools: ["billing.refund"] }, true],
  ["the beginning of its tool", { to: ["c"], tools: ["billing.*"] }, true],
  ["another tool", { to: ["c"], tools: ["billing", "crm.*"] }, false],
  ["its risk", { to: ["c"], risk: ["irreversible"] }, true],
  ["another risk", { to: ["c"], risk: ["read"] }, false],
  ["its assignee", { to: ["c"], assignee: ["person:ada"] }, true],
  ["another assignee", { to: ["c"], assignee: ["person:ben"] }, false],
  ["a group of its assignee", { to: ["c"], group: ["finance"] }, true],
  ["another group", { to: ["c"], group: ["sre"] }, false],
  ["all conditions but one", { to: ["c"], tools: ["billing.*"], risk: ["read"] }, false],
  ["another kind", { to: ["c"], on: ["decided"] }, false],
])("a route that names %s", (_, route, isTold) => {
  expect(planned(route)).toEqual(isTold ? [["c", "asked", 0]] : []);
});

test("a question assigned to a group itself matches that group", () => {
  expect(planned({ to: ["c"], group: ["sre"] }, { assignedTo: "sre" })).toHaveLength(1);
});

test.each([
  ["21:59", "22:00", "07:00", "UTC", 0],
  ["22:00", "22:00", "07:00", "UTC", 540],
  ["23:30", "22:00", "07:00", "UTC", 450],
  ["06:59", "22:00", "07:00", "UTC", 1],
  ["07:00", "22:00", "07:00", "UTC", 0],
  ["12:30", "12:00", "13:00", "UTC", 30],
  // Berlin is one hour ahead in November.
  ["21:30", "22:00", "07:00", "Europe/Berlin", 510],
])("at %s, quiet from %s to %s in %s: %i minutes later", (at, from, to, timeZone, minutes) => {
  expect(planned({ to: ["c"], quiet: { from, to, timeZone } }, {}, at)).toEqual([
    ["c", "asked", minutes],
  ]);
});

test("quiet hours let through what they except", () => {
  const quiet = { from: "00:00", to: "23:59", except: ["irreversible"] };
  expect(planned({ to: ["c"], quiet })).toEqual([["c", "asked", 0]]);
  expect(planned({ to: ["c"], quiet }, { risk: "read" })).toEqual([["c", "asked", 719]]);
});

test("digests go out at fixed times, reminders before the deadline, escalations after their time", () => {
  const hour = 3_600_000;
  expect(planned({ to: ["c"], digestMs: hour }, {}, "12:10")).toEqual([["c", "asked", 50]]);
  const both = { to: ["c"], remindBeforeMs: hour, escalate: { afterMs: hour, to: ["lead"] } };
  expect(planned(both)).toEqual([
    ["c", "asked", 0],
    ["c", "reminded", 420],
    ["lead", "escalated", 60],
  ]);
  expect(planned({ to: ["c"], remindBeforeMs: 24 * hour }), "too late for it").toEqual([
    ["c", "asked", 0],
  ]);
});
