import type { Validator } from "sallyport";

/** Nothing in this story is staged, so the validators are never asked; if they were, the answer is no. */
export const askNobody: Validator = {
  name: "nobody",
  review() {
    throw new Error("nothing should have been staged");
  },
};
