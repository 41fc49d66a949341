type Value = number | null;

export interface ModelOperation {
  readonly tool: "world.set" | "world.blind";
  readonly key: string;
  readonly message: string;
  readonly before: Value;
  readonly after: Value;
  /** Earlier operations, by place, whose record it changed as well, and the value that it left there. */
  readonly alsoChanged: ReadonlyMap<number, Value>;
  status: "success" | "failed" | "rolled_back";
}

export interface ModelProposal {
  readonly tool: ModelOperation["tool"];
  readonly key: string;
  readonly value: number;
  readonly message: string;
  /** The value that the reviewer saw. */
  readonly seen: Value;
  state: "pending_ml" | "approved" | "executed" | "failed";
}

/** Production, what was done to it and what can be undone, as documented. */
export class UndoModel {
  readonly values = new Map<string, Value>();
  operations: ModelOperation[] = [];
  proposals: ModelProposal[] = [];
  stopped = false;
  /** Production refuses every change. */
  broken = false;
  /** Requests that reached production, refused ones too. */
  requests = 0;
  /** What rollbacks came to, for counting. */
  readonly outcomes: string[] = [];

  /** A call that the gate allows by itself. */
  call(key: string, value: number, message: string): string {
    if (this.stopped) return "failed";
    return this.#do("world.set", key, value, message) ? "done" : "failed";
  }

  propose(tool: ModelOperation["tool"], key: string, value: number, message: string): string {
    const seen = this.#valueOf(key);
    this.proposals.push({ tool, key, value, message, seen, state: "pending_ml" });
    return "pending";
  }

  approve(which: number): string {
    const proposal = this.proposals[which];
    if (proposal === undefined) return "!not_found";
    if (proposal.state !== "pending_ml") return "!already_answered";
    // The yes is kept, and nothing is looked at before work resumes.
    proposal.state = "approved";
    return this.stopped ? "pending" : this.#carryOut(proposal);
  }

  /** What was approved during the stop runs now, oldest first, after the same looks as ever. */
  resume(): void {
    this.stopped = false;
    for (const proposal of this.proposals.filter(({ state }) => state === "approved")) {
      this.#carryOut(proposal);
    }
  }

  #carryOut(proposal: ModelProposal): string {
    const { tool, key, value, message, seen } = proposal;
    proposal.state = "failed";
    // The blind tool shows nothing, so nothing can differ; the other goes back to review.
    if (tool === "world.set" && this.#valueOf(key) !== seen) {
      return this.propose(tool, key, value, message);
    }
    if (!this.#do(tool, key, value, message)) return "failed";
    proposal.state = "executed";
    return "done";
  }

  /** Newest first; the outcome of each operation by its place. */
  rollback(by: string, isIn: (operation: ModelOperation, place: number) => boolean): string[] {
    const outcomes: string[] = this.operations.map(() => "");
    for (const [place, operation] of [...this.operations.entries()].toReversed()) {
      if (isIn(operation, place)) outcomes[place] = this.#takeBack(operation, by);
    }
    this.outcomes.push(...outcomes.filter(Boolean));
    return outcomes;
  }

  copy(): UndoModel {
    const other = Object.assign(new UndoModel(), this);
    other.operations = this.operations.map((one) => ({ ...one }));
    other.proposals = this.proposals.map((one) => ({ ...one }));
    return Object.assign(other, { values: new Map(this.values), outcomes: [...this.outcomes] });
  }

  #takeBack(operation: ModelOperation, by: string): string {
    const { tool, key, before, after } = operation;
    if (operation.status !== "success") return "skipped";
    if (tool === "world.blind") return "irreversible";
    // While a later change of the same record is in effect, the earlier one stays.
    const place = this.operations.indexOf(operation);
    if (this.#inEffect().some(({ alsoChanged }) => alsoChanged.has(place))) return "conflicted";
    // Who made the calls consents to nothing that a person would be asked about.
    if (by === "agent:one" && !key.startsWith("free-")) return "failed";
    if (this.#valueOf(key) !== after) return "conflicted";
    if (this.stopped || !this.#write(key, before)) return "failed";
    operation.status = "rolled_back";
    return "undone";
  }

  #do(tool: ModelOperation["tool"], key: string, value: number, message: string): boolean {
    const before = this.#valueOf(key);
    const known = tool === "world.blind" ? [] : this.#knownPlaces(key, before);
    const done = tool === "world.blind" ? this.#reach() : this.#write(key, value);
    const status = done ? "success" : "failed";
    const isChange = done && value !== before;
    const alsoChanged = new Map(isChange ? known.map((place) => [place, value] as const) : []);
    this.operations.push({ tool, key, message, before, after: value, alsoChanged, status });
    return done;
  }

  #inEffect(): readonly ModelOperation[] {
    return this.operations.filter(({ status }) => status === "success");
  }

  /** Operations on this record since which only our own calls have changed it. */
  #knownPlaces(key: string, now: Value): readonly number[] {
    return this.operations.flatMap((one, place) => {
      if (one.tool === "world.blind" || one.status !== "success" || one.key !== key) return [];
      const newest = this.#inEffect().findLast(({ alsoChanged }) => alsoChanged.has(place));
      const versions = [
        one.after,
        ...(newest === undefined ? [] : [newest.alsoChanged.get(place)]),
      ];
      return versions.includes(now) ? [place] : [];
    });
  }

  #write(key: string, value: Value): boolean {
    if (!this.#reach()) return false;
    this.values.set(key, value);
    return true;
  }

  #reach(): boolean {
    this.requests += 1;
    return !this.broken;
  }

  #valueOf(key: string): Value {
    return this.values.get(key) ?? null;
  }
}
