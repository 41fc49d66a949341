/** A plausible bug in the product, and the test that has to notice it. */
export interface Bug {
  readonly name: string;
  /** The mistake in words. */
  readonly what: string;
  readonly file: string;
  /** The source as it is; it must be there exactly once. */
  readonly right: string;
  readonly wrong: string;
  /** The mistake is that something never ends, so that running out of time is the notice; of any other it says nothing. */
  readonly hangs?: true;
  /** Which tests look: a file and, to be quick, a pattern for their titles; at the scale of `npm test` unless told otherwise. */
  readonly caughtBy: {
    readonly file: string;
    readonly title: string;
    readonly scale?: "test" | "proof";
  };
}
