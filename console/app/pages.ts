/** The pages in the order of the bar, each with its key. */
export const PAGES = [
  { to: "/inbox", name: "Inbox", key: "1" },
  { to: "/sessions", name: "Sessions", key: "2" },
  { to: "/tasks", name: "Tasks", key: "3" },
  { to: "/delegations", name: "Delegations", key: "4" },
  { to: "/rules", name: "Rules", key: "5" },
  { to: "/tools", name: "Tools", key: "6" },
  { to: "/audit", name: "Audit", key: "7" },
  { to: "/plots", name: "Plots", key: "8" },
] as const;
