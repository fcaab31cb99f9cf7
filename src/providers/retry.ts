import type { Field } from "./refusal.ts";

/**
 * Seconds before the next attempt after a failure: 1 second doubling to 5 minutes with each attempt (from 0),
 * shortened at random by up to a half.
 */
export function backoff(attempt: number, random: () => number): number {
  return Math.min(2 ** attempt, LONGEST) * (1 - random() / 2);
}

const LONGEST = 300;

/** Where a backend announces when it answers again. */
interface Announcement {
  status: number;
  headers?: Headers;
  /** The fields of the error body. */
  fields: Field[];
  /** Its messages. */
  text: string;
}

/**
 * When a backend says that it answers again, in milliseconds since 1970; undefined when it does not say. `Retry-After`
 * and the error body tell it, if only as a time of the clock; the headers of rate limits do where these are silent.
 */
export function announcedTime(said: Announcement, now: number): number | undefined {
  const { status, headers = new Headers(), fields, text } = said;
  const limits = status === 429 || status === 403 ? resetHeaders(headers, now) : [];
  const given = [...retryAfter(headers, now), ...bodyTimes(fields, now), ...textTimes(text, now)];
  for (const times of [given, clockTimes(text, now), limits]) {
    const at = Math.max(...times.filter((time) => time > now && time - now < FARTHEST));
    if (Number.isFinite(at)) return at;
  }
  return undefined;
}

/** Milliseconds of the longest announced time that is believed: a year and a day. */
const FARTHEST = 366 * 86_400_000;

function retryAfter(headers: Headers, now: number): number[] {
  const ms = headers.get("retry-after-ms") ?? headers.get("x-ms-retry-after-ms") ?? "";
  if (/^\d+(\.\d+)?$/.test(ms.trim())) return [now + Number(ms)];
  return timeOf(headers.get("retry-after") ?? "", now);
}

/** The times of the limits that are used up; of all limits where none says how much is left. */
function resetHeaders(headers: Headers, now: number): number[] {
  const resets = [...headers].filter(([name]) => /rate-?limit.*reset/.test(name));
  const about = (name: string, fact: string) => headers.get(name.replace("reset", fact));
  const spent = resets.filter(([name]) =>
    Number(about(name, "remaining") ?? 0) <= 0 && !about(name, "status")?.startsWith("allowed")
  );
  return (spent.length > 0 ? spent : resets).flatMap(([, value]) => timeOf(value, now));
}

const TIME_FIELD =
  /^(retry_(after|delay|at)|resets?(_(in|at|time|after))?|x-rate_?limit-reset)(_seconds|_ms)?$/;

function bodyTimes(fields: Field[], now: number): number[] {
  return fields.flatMap(([field, value]) => {
    const name = field.replace(/([a-z])([A-Z])/g, "$1_$2").toLowerCase();
    if (!TIME_FIELD.test(name)) return [];
    const ms = name.endsWith("_ms") && Number.isFinite(Number(value));
    return ms ? [now + Number(value)] : timeOf(String(value), now);
  });
}

const UNIT = String.raw`(?:ms|milliseconds?|s|sec(?:ond)?s?|m|min(?:ute)?s?|h|hours?|d|days?)`;
const PART = String.raw`\d+(?:\.\d+)? ?${UNIT}(?![a-z])`;
const DURATION = `${PART}(?:(?:,| and)? ?${PART})*`;
const IN = RegExp(
  String
    .raw`(?:try again|retry|available|resets?|wait)(?: (?:in|after|for))?(?: about)? (${DURATION})`,
  "gi",
);
const AT =
  /(?:(?:resets?|try again|retry|available(?: again)?|regain access) (?:at|on|after)|until) (\d{4}-\d\d-\d\d[^,;]{0,30}|\d{10,13})|limit reached\|(\d{10,13})/gi;

/** The times in messages such as "try again in 9m38s" or "will reset at 2026-01-02 03:04:05". */
function textTimes(words: string, now: number): number[] {
  const text = words.replace(/\b(?:an?|one) (?=minute|hour|day)/gi, "1 ");
  return [
    ...[...text.matchAll(IN)].flatMap(([, duration]) => timeOf(duration!, now)),
    ...[...text.matchAll(AT)].flatMap(([, date, stamp]) => timeOf((date ?? stamp)!, now)),
    ...[...text.matchAll(DATED)].map(([, day, year, time, zone = ""]) =>
      Date.parse(`${day} ${year} ${time}${zone}`)
    ),
  ];
}

const DATED =
  /(?:resets?|try again|retry|available(?: again)?|regain access) (?:at|on|after) ([A-Z][a-z]{2,8}\.? \d{1,2})(?:st|nd|rd|th)?,? (\d{4}),? (?:at )?(\d{1,2}:\d\d ?[AP]M)( UTC| GMT)?/gi;

const CLOCK = RegExp(
  String
    .raw`(?:resets?|try again|retry|available(?: again)?|regain access|until)(?: (?:at|on|after))? ` +
    String.raw`(\d{1,2})(?::([0-5]\d)(?::[0-5]\d)?)?(?!\d)(?: ?([ap])\.?m\b\.?)?`,
  "gi",
);
const ZONE =
  /^ ?(?:\(([^)\s]{1,40})\)|(?:UTC|GMT)?[+-]\d\d?(?::?\d\d)?|(?:UTC|GMT|Z|[A-Z]{1,4}T)\b)/;

/** The next times of the clock in messages such as "try again at 7:58 PM" or "resets 3pm (America/Santiago)". */
function clockTimes(words: string, now: number): number[] {
  return [...words.matchAll(CLOCK)].flatMap(({ 0: all, 1: hours, 2: minutes, 3: half, index }) => {
    const [named, inner] = ZONE.exec(words.slice(index + all.length)) ?? [];
    const twelve = half !== undefined;
    const hour = Number(hours) % (twelve ? 12 : 24) + (/p/i.test(half ?? "") ? 12 : 0);
    const none = !twelve && minutes === undefined;
    if (none || Number(hours) > (twelve ? 12 : 23) || (twelve && Number(hours) === 0)) return [];
    const current = minuteOfDay((inner ?? named ?? "").trim(), now);
    if (current === undefined) return [];
    // A time of the current minute is over at the end of it.
    const wait = (hour * 60 + Number(minutes ?? 0) - current + DAY) % DAY || 1;
    return [(Math.floor(now / 60_000) + wait) * 60_000];
  });
}

const DAY = 24 * 60;
/** Names of American time zones: their city by the first letter. */
const CITIES: Record<string, string> = {
  E: "New_York",
  C: "Chicago",
  M: "Denver",
  P: "Los_Angeles",
};

/** The minute of the day in a time zone; of the machine when none is named, undefined when it is unknown. */
function minuteOfDay(zone: string, now: number): number | undefined {
  const [, sign, hours, minutes = "00"] = /^(?:UTC|GMT)?([+-])(\d\d?)(?::?(\d\d))?$/.exec(zone) ??
    [];
  const american = /^([ECMP])[SD]?T$/.exec(zone)?.[1];
  const timeZone = sign !== undefined
    ? `${sign}${hours!.padStart(2, "0")}:${minutes}`
    : american !== undefined
    ? `America/${CITIES[american]}`
    : zone === "Z"
    ? "UTC"
    : zone || undefined;
  try {
    const format = new Intl.DateTimeFormat("en-GB", {
      timeZone,
      hour: "2-digit",
      minute: "2-digit",
    });
    const [hour, minute] = format.format(now).split(":").map(Number);
    return hour! * 60 + minute!;
  } catch {
    return undefined;
  }
}

const PARTS = /(\d+(?:\.\d+)?) ?(ms|milli|s|m|h|d)[a-z]*/gi;
const SECONDS: Record<string, number> = {
  ms: 0.001,
  milli: 0.001,
  s: 1,
  m: 60,
  h: 3600,
  d: 86_400,
};
const STAMP =
  /^(\d{4}-\d\d-\d\d)(?:T| at | )(\d\d:\d\d(?::\d\d(?:\.\d+)?)?) ?(Z|UTC|GMT|[+-]\d\d:?\d\d)?/i;

/**
 * A time in milliseconds: seconds from now or since 1970, milliseconds since 1970, a duration such as `6m0s`, an HTTP
 * date, or a date and time, which are UTC unless they name a zone. Empty when it is none of them.
 */
function timeOf(value: string, now: number): number[] {
  const text = value.trim();
  if (/^\d+(\.\d+)?$/.test(text)) {
    const number = Number(text);
    return [number > 1e12 ? number : number > 1e9 ? number * 1000 : now + number * 1000];
  }
  const [, date, time, zone = "Z"] = STAMP.exec(text) ?? [];
  if (date !== undefined) {
    return [Date.parse(`${date}T${time}${/^[+-]/.test(zone) ? zone : "Z"}`)];
  }
  if (RegExp(`^${DURATION}$`, "i").test(text)) {
    const parts = [...text.matchAll(PARTS)];
    return [
      now +
      parts.reduce((sum, [, n, unit]) => sum + Number(n) * SECONDS[unit!.toLowerCase()]! * 1000, 0),
    ];
  }
  const http = /^[A-Z][a-z]{2}, /.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(http) ? [] : [http];
}
