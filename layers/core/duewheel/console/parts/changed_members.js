// What of `now` is otherwise than it was `before`, both as a form says it.
export function changedMembers(before, now) {
  return Object.fromEntries(Object.entries(now).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(before[name])));
}
