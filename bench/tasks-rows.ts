/** What the floors write, as long as the product's own. */
export const FACTS = JSON.stringify({
  subject: "Task 1234",
  description: "Look at the invoice and say what is wrong with it.",
  created_at: "2026-11-15T06:00:00.000Z",
});
export const RESULT = JSON.stringify("Nothing is wrong.");
export const CLAIM_MS = 60_000;
