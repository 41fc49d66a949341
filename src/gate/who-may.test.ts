import { expect, test } from "vitest";
import { type Person, whyNot } from "./inbox.ts";

const CHAIN = ["agent:one", "agent:boss", "person:olga"];
const free = { chain: CHAIN, assignedTo: "" };
const people: readonly Person[] = [
  { id: "person:ada", groups: ["group:bank"] },
  { id: "person:bob", agents: ["agent:two"] },
  { id: "person:paul", agents: ["agent:other", "agent:boss"] },
  { id: "person:olga" },
];

test("anybody who did not ask may decide; with a list, only those on it", () => {
  expect(whyNot("person:ada", free)).toBeUndefined();
  expect(whyNot("person:eve", free)).toBeUndefined();
  expect(whyNot("person:ada", free, people)).toBeUndefined();
  expect(whyNot("person:bob", free, people)).toBeUndefined();
  expect(whyNot("person:eve", free, people)).toContain("not among the people");
  expect(whyNot("person:ada", free, [])).toContain("not among the people");
});

test("nobody who asked may decide: agent, delegators, owner, and whose automation it is [T6]", () => {
  for (const by of CHAIN) {
    expect(whyNot(by, free), by).toContain("Another person has to decide");
    expect(whyNot(by, free, [...people, { id: by }]), by).toContain("Another person has to decide");
  }
  expect(whyNot("person:paul", free, people)).toContain("Another person has to decide");
});

test("another spelling of an asker is refused, and gets no rights of anybody [T6]", () => {
  const spelled = (name: string) => [
    name.toUpperCase(),
    ` ${name}`,
    `${name}\u3000`,
    `${name}\u200d`,
    `\u2066${name}\u2069`,
    name.replace("o", "\uff4f"),
  ];
  for (const by of CHAIN.flatMap(spelled)) {
    expect(whyNot(by, free), JSON.stringify(by)).toBeDefined();
  }
  for (const by of spelled("person:ada")) {
    expect(whyNot(by, free, people), JSON.stringify(by)).toContain("not among the people");
    expect(whyNot(by, { chain: [], assignedTo: "person:ada" })).toContain("handed to person:ada");
  }
});

test("what is no name decides nothing", () => {
  for (const by of ["", " ", "\u200b", "a\u0000", "\ud800", "x".repeat(513)]) {
    expect(whyNot(by, free), JSON.stringify(by)).toContain("Say who decides");
    expect(whyNot(by, free, [{ id: by }]), JSON.stringify(by)).toContain("Say who decides");
  }
});

test("what was handed to somebody is theirs, or their group's", () => {
  const handed = (assignedTo: string) => ({ chain: CHAIN, assignedTo });
  expect(whyNot("person:ada", handed("person:ada"), people)).toBeUndefined();
  expect(whyNot("person:bob", handed("person:ada"), people)).toContain("handed to person:ada");
  expect(whyNot("person:ada", handed("group:bank"), people)).toBeUndefined();
  expect(whyNot("person:bob", handed("group:bank"), people)).toContain("handed to group:bank");
  // Without a list no one is in a group.
  expect(whyNot("person:ada", handed("group:bank"))).toContain("handed to group:bank");
  // Being assigned a question does not entitle its requester to answer it.
  expect(whyNot("person:olga", handed("person:olga"), people)).toContain("Another person");
});
