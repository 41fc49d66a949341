import type { Gate } from "sallyport";

/** Ada answers the inbox. The agent cannot decide about its own questions. */
export async function answerInbox({ interactions }: Gate): Promise<void> {
  for (const { id, type, hash, choices } of await interactions.list({ status: "open" })) {
    const ada = { hash, by: "person:ada" };
    if (type === "confirm") {
      const shown = await interactions.shown(id);
      console.log(`ada: yes to ${JSON.stringify(shown?.preview.dryRun)}`);
      await interactions.approve(id, ada);
    }
    if (type === "ask_user") {
      const answer = choices[0] ?? "As you think best.";
      console.log(`ada: ${answer}`);
      await interactions.answer(id, { ...ada, answer });
    }
  }
}
