// What people were asked and said.

import { foldName } from "../../model/names.ts";
import { missingFactors } from "../../model/requirement.ts";
import { fromIso } from "../../util/clock.ts";
import type { Invariant } from "../evidence.ts";
import { lookAt } from "../look.ts";
import { closingsOf } from "./histories.ts";

export const I3: Invariant = {
  id: "I3",
  text: "Nobody who asked for something decides it, no agent does, and the yes of each person counts once.",
  check({ interactions }) {
    const approved = interactions.filter(
      ({ type, outcome }) => type === "confirm" && outcome === "approved",
    );
    return approved.flatMap(({ id, chain, votes, requires }) => {
      const askers = chain.map(foldName);
      const people = votes.map(({ by }) => foldName(by));
      const problems: string[] = [];
      const own = votes.find(({ by }) => askers.includes(foldName(by)));
      if (own !== undefined) problems.push(`${id} was approved by ${own.by}, who asked for it`);
      const agent = people.find((by) => by.startsWith("agent:"));
      if (agent !== undefined) problems.push(`${id} was approved by ${agent}`);
      if (new Set(people).size < people.length) problems.push(`${id} counts one person twice`);
      if (missingFactors(requires, votes).length > 0) {
        problems.push(`${id} was approved with too few votes`);
      }
      return problems;
    });
  },
};

export const I10: Invariant = {
  id: "I10",
  text: "A question is answered once, and silence ends as no.",
  check(evidence) {
    const look = lookAt(evidence);
    return evidence.interactions.flatMap(({ id, status, outcome, decisionId }) => {
      const closings = closingsOf(id, look);
      const problems: string[] = [];
      if (closings.length > 1) problems.push(`${id} was closed ${closings.length} times`);
      if (status === "open" && closings.length > 0) problems.push(`${id} is open again`);
      const state = decisionId === "" ? undefined : look.decision(decisionId)?.state;
      if ((outcome === "expired" || outcome === "canceled") && state !== undefined) {
        if (state !== "rejected_ml") problems.push(`${id} is ${outcome}, but it is ${state}`);
      }
      return problems;
    });
  },
};

/** A lease or an approval that is over stays over, whatever clocks do. */
export const I13: Invariant = {
  id: "I13",
  text: "An expired lease or approval never becomes valid again.",
  check(evidence) {
    const look = lookAt(evidence);
    const late = evidence.interactions.flatMap(({ id, deadline }) =>
      closingsOf(id, look)
        .filter(
          ({ type, at }) => type === "interaction.answered" && fromIso(at) > fromIso(deadline),
        )
        .map(({ at }) => `${id} was answered at ${at}, after ${deadline}`),
    );
    const revived = evidence.operations.flatMap(({ id }) => {
      let newest = 0;
      return look.linesOf(id).flatMap(({ type, data, seq }) => {
        const { fence } = data;
        if (typeof fence !== "number" || type === "operation.undone") return [];
        if (fence < newest) {
          return [`${id} was written under fence ${fence} at ${seq}, which was over`];
        }
        newest = fence;
        return [];
      });
    });
    return [...late, ...revived];
  },
};
