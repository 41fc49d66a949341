/** One step of a matcher. `next` and the branches are indexes into the program. */
export type Step =
  | { readonly op: "match" }
  | { readonly op: "character"; readonly test: CharacterTest; readonly next: number }
  | { readonly op: "split"; readonly first: number; readonly second: number }
  | { readonly op: "assert"; readonly holds: Assertion; readonly next: number }
  | {
      readonly op: "look";
      readonly wanted: boolean;
      readonly inner: number;
      readonly next: number;
    };

export type CharacterTest = (codePoint: number) => boolean;
export type Assertion = (text: string, at: number) => boolean;

/** A piece of a pattern: builds its steps in front of `next` and says where they begin. */
export type Piece = (program: ProgramBuilder, next: number) => number;

/** `{1000}` is written out, so a short pattern can ask for a long program; copies of nothing count as well. */
const MOST_STEPS = 20_000;

export class ProgramTooLong extends Error {}

/** Programs are built from their end, so that every piece knows where to go on. */
export class ProgramBuilder {
  readonly steps: Step[] = [];
  #copies = 0;

  add(step: Step): number {
    if (this.steps.length >= MOST_STEPS) throw new ProgramTooLong();
    return this.steps.push(step) - 1;
  }

  countCopy(): void {
    this.#copies += 1;
    if (this.#copies > MOST_STEPS) throw new ProgramTooLong();
  }

  /** A loop needs its own address before its body exists; what is left here must be set with `setSplit`. */
  reserve(): number {
    return this.add({ op: "match" });
  }

  setSplit(at: number, first: number, second: number): void {
    this.steps[at] = { op: "split", first, second };
  }
}

export function character(test: CharacterTest): Piece {
  return (program, next) => program.add({ op: "character", test, next });
}

export function assertion(holds: Assertion): Piece {
  return (program, next) => program.add({ op: "assert", holds, next });
}

export function sequence(pieces: readonly Piece[]): Piece {
  return (program, next) => pieces.reduceRight((after, piece) => piece(program, after), next);
}

export function either(branches: readonly Piece[]): Piece {
  return (program, next) =>
    branches
      .map((branch) => branch(program, next))
      .reduceRight((second, first) => program.add({ op: "split", first, second }));
}

export function lookahead(inner: Piece, wanted: boolean): Piece {
  return (program, next) => {
    const end = program.add({ op: "match" });
    return program.add({ op: "look", wanted, inner: inner(program, end), next });
  };
}

/** Greedy and lazy repetitions accept the same texts, and only that is asked here. */
export function repeat(piece: Piece, min: number, max: number): Piece {
  return (program, next) => {
    let at = next;
    if (max === Number.POSITIVE_INFINITY) {
      at = program.reserve();
      program.setSplit(at, piece(program, at), next);
    } else {
      for (let extra = min; extra < max; extra += 1) {
        at = program.add({ op: "split", first: piece(program, at), second: next });
      }
    }
    for (let copy = 0; copy < min; copy += 1) {
      program.countCopy();
      at = piece(program, at);
    }
    return at;
  };
}
