/** Nobody is signed in here, or not any more. */
export function SignedOut() {
  return (
    <main className="mx-auto mt-[12vh] max-w-lg space-y-3 px-4">
      <h1>You are not signed in</h1>
      <p>
        Open the sign-in link that the server printed when it started, or ask an operator for a new one. A
        link works once.
      </p>
      <p>
        <a href="/signin">Sign in</a>
      </p>
    </main>
  );
}
