import type { Validator } from "sallyport";

/** Nothing of this story is staged, so nobody is ever asked; if somebody were, the answer is no. */
export const askNobody: Validator = {
  name: "nobody",
  review() {
    throw new Error("nothing should have been staged");
  },
};
