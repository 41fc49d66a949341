/** The pages in the order of the bar, each with its key. */
export const PAGES = [
  { to: "/inbox", name: "Inbox", key: "1" },
  { to: "/overview", name: "Overview", key: "2" },
  { to: "/decisions", name: "Decisions", key: "3" },
  { to: "/sessions", name: "Sessions", key: "4" },
  { to: "/tasks", name: "Tasks", key: "5" },
  { to: "/delegations", name: "Delegations", key: "6" },
  { to: "/conversations", name: "Conversations", key: "7" },
  { to: "/rules", name: "Rules", key: "8" },
  { to: "/tools", name: "Tools", key: "9" },
  { to: "/audit", name: "Audit", key: "0" },
] as const;
