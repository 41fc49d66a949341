// The chart library asks the browser for its language when it is loaded, and a machine without one gives a word that is none.

try {
  new Intl.NumberFormat(navigator.language);
} catch {
  Object.defineProperty(navigator, "language", { value: "en", configurable: true });
}

export {};
