import { clientOf, passOf } from "../http/passes.ts";

/** As the admin whom the first link signs in: tokens for agents, and an invitation for each reviewer, who signs in with it. */
export async function passMaker(link: string) {
  const admin = await passOf(link);
  const { people, tokens } = clientOf(new URL(link).origin, admin);
  return async (subject: string, role: "agent" | "reviewer"): Promise<string> => {
    if (role === "agent") return (await tokens.make({ subject, roles: [role] })).secret;
    const invited = await people.invite({ subject, roles: [role] });
    if (invited.state !== "ready") throw new Error("there is another admin");
    return passOf(invited.link);
  };
}
