// What time the service has. A viewer's own clock may be wrong, and the local stack's is moved by hand.

const EXACT_MS = 2000; // an answer tells the second, and comes a moment later

let aheadMs = 0;

// The `Date` of an answer.
export function heard(date) {
  const difference = Date.parse(date) - Date.now();
  if (!Number.isNaN(difference)) aheadMs = Math.abs(difference) < EXACT_MS ? 0 : difference;
}

export function nowMs() {
  return Date.now() + aheadMs;
}
