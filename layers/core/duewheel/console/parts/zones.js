// Time zones: which there are, and how far each is from UTC at an instant.

export function zoneNames() {
  return ["UTC", ...Intl.supportedValuesOf("timeZone").filter((name) => name !== "UTC")];
}

// The service's edition of the zones may know one that this browser does not.
export function isKnown(zone) {
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}

// "+01:00", "-03:30"; "+00:00" for UTC.
export function offset(text, zone) {
  const parts = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" }).formatToParts(new Date(text));
  const { value } = parts.find(({ type }) => type === "timeZoneName");
  return value.replace("GMT", "") || "+00:00";
}
