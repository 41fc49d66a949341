/** Who is there: two who may decide, the owner on whose behalf it was asked, and the agent itself. */
export const PEOPLE = ["person:ada", "person:bob", "person:owner", "agent:one"] as const;
const ASKERS: readonly string[] = ["person:owner", "agent:one"];

export interface Asked {
  readonly type: "ask_user" | "confirm";
  readonly needs: number;
  readonly deadline: number;
  outcome: "open" | "answered" | "approved" | "rejected" | "expired" | "canceled";
  closedBy: string;
  answer: string;
  votes: string[];
  assignedTo: string;
}

export interface Given {
  readonly which: number;
  readonly by: string;
  readonly rightHash: boolean;
}

/** Questions as documented: closed once, in time, by a person who may, with the hash that was shown. */
export class InboxModel {
  readonly questions: Asked[] = [];
  /** By the agent's own id of the question. */
  readonly byCall = new Map<number, Asked>();
  effects = 0;

  open(type: Asked["type"], needs: number, deadline: number): Asked {
    const fresh = { outcome: "open", closedBy: "", answer: "", assignedTo: "" } as const;
    const asked: Asked = { type, needs, deadline, ...fresh, votes: [] };
    this.questions.push(asked);
    return asked;
  }

  answer(given: Given, answer: string, now: number): string {
    return this.#close(given, "ask_user", now, (asked) => {
      asked.answer = answer;
      return "answered";
    });
  }

  reject(given: Given, now: number): string {
    return this.#close(given, "confirm", now, () => "rejected");
  }

  approve(given: Given, now: number): string {
    const asked = this.questions[given.which];
    // The same person on a second screen: nothing changes and nothing is wrong.
    const again = asked?.outcome === "open" && asked.votes.includes(given.by);
    if (again && mayDecide(asked, given.by)) return "open";
    return this.#close(given, "confirm", now, (open) => {
      open.votes.push(given.by);
      if (open.votes.length < open.needs) return "open";
      this.effects += 1;
      return "approved";
    });
  }

  cancel({ which, by }: Given): string {
    return this.#close({ which, by, rightHash: true }, undefined, 0, () => "canceled");
  }

  handOver({ which, by }: Given, to: string): string {
    const asked = this.questions[which];
    if (asked === undefined) return "!not_found";
    if (ASKERS.includes(by) || ASKERS.includes(to)) return "!not_allowed";
    if (asked.outcome !== "open") return "!already_answered";
    asked.assignedTo = to;
    return "open";
  }

  sweep(now: number): number {
    const late = this.questions.filter((one) => one.outcome === "open" && now > one.deadline);
    for (const one of late) one.outcome = "expired";
    return late.length;
  }

  #close(
    { which, by, rightHash }: Given,
    type: Asked["type"] | undefined,
    now: number,
    close: (asked: Asked) => Asked["outcome"],
  ): string {
    const asked = this.questions[which];
    if (asked === undefined) return "!not_found";
    if (!mayDecide(asked, by)) return "!not_allowed";
    if (type !== undefined && asked.type !== type) return "!illegal_transition";
    if (asked.outcome !== "open") return "!already_answered";
    if (!rightHash || now > asked.deadline) return "!approval_void";
    asked.outcome = close(asked);
    if (asked.outcome !== "open") asked.closedBy = by;
    return asked.outcome;
  }
}

function mayDecide({ assignedTo }: Asked, by: string): boolean {
  return !ASKERS.includes(by) && (assignedTo === "" || assignedTo === by);
}
