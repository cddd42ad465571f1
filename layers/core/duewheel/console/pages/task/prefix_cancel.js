// Cancels all live tasks under a key prefix, after counting them.

import { el } from "../../parts/elements.js";
import { once } from "../../parts/once.js";
import { confirmed, refusalText, told } from "../../parts/outcomes.js";
import { call } from "../../parts/service.js";

const COUNTED_MAX = 1000;
const KEYS_SHOWN = 5;

// A button; `then` follows when tasks were cancelled.
export function cancelAllButton({ biz_type, key_prefix }, then) {
  const work = once(async () => {
    if (await cancelledAll(biz_type, key_prefix)) await then();
  });
  return () => el("button", { type: "button", class: "danger", on: { click: work } }, `Cancel all under ${key_prefix}`);
}

async function cancelledAll(business, prefix) {
  let count;
  try {
    count = await counted(business, prefix);
  } catch (error) {
    told(refusalText(error), "refused");
    return false;
  }
  if (count === 0) return void told(`No live task exists under ${prefix}.`);
  const many = count > COUNTED_MAX ? `more than ${COUNTED_MAX} tasks` : tasks(count);
  const text = `All live tasks of ${business} whose keys begin with ${prefix} are cancelled, also those created while this goes on. Their calls are not made. This cannot be undone.`;
  return confirmed({ title: `Cancel ${many}?`, text, verb: "Cancel them", danger: true }, () => cancelling(business, prefix));
}

async function counted(business, prefix) {
  let [count, cursor] = [0, null];
  do {
    const query = { key_prefix: prefix, limit: 100, cursor };
    const { members } = await call("GET", ["businesses", business, "tasks"], { query });
    count += members.tasks.length;
    cursor = members.cursor;
  } while (cursor !== null && count <= COUNTED_MAX);
  return count;
}

async function cancelling(business, prefix) {
  let [cancelled, cursor] = [0, null];
  const late = [];
  try {
    do {
      const { members } = await call("DELETE", ["businesses", business, "tasks"], { query: { key_prefix: prefix, cursor } });
      cancelled += members.cancelled;
      late.push(...members.too_late);
      cursor = members.cursor;
    } while (cursor !== null);
  } catch (error) {
    if (cancelled > 0) told(`${tasks(cancelled)} cancelled before the service refused. The others remain; cancel them again.`, "refused");
    throw error;
  }
  return `${tasks(cancelled)} cancelled.${tooLate(late)}`;
}

function tooLate(keys) {
  if (keys.length === 0) return "";
  const shown = keys.slice(0, KEYS_SHOWN).join(", ");
  const more = keys.length > KEYS_SHOWN ? ` and ${keys.length - KEYS_SHOWN} more` : "";
  return ` Too late for ${tasks(keys.length)}, whose call may be under way: ${shown}${more}.`;
}

function tasks(count) {
  return count === 1 ? "1 task" : `${count} tasks`;
}
