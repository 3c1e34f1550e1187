// Two languages: a dictionary of [English, Chinese] by key, a choice that is remembered, and forms for numbers and times.

const LANGUAGES = ['en', 'zh'];
const KEY = 'seckill.language';
let words = {};
let language = 'en';

function remembered() {
  const kept = localStorage.getItem(KEY);
  if (LANGUAGES.includes(kept)) return kept;
  return navigator.language.toLowerCase().startsWith('zh') ? 'zh' : 'en';
}

function apply(next) {
  language = next;
  document.documentElement.lang = next === 'zh' ? 'zh-CN' : 'en';
}

/** Takes the dictionary and the language that was chosen last, else the browser's. */
export function learn(dictionary) {
  words = dictionary;
  apply(remembered());
}

/** Changes to the other language. */
export function switchLanguage() {
  apply(language === 'en' ? 'zh' : 'en');
  localStorage.setItem(KEY, language);
}

/** `en` or `zh`. */
export const current = () => language;

/** One of the forms `one|other`, by the number `n`; a text without forms as it is. */
function form(text, n) {
  const [one, other] = text.split('|');
  return other === undefined || String(n) === '1' ? one : other;
}

/** The words for a key, with `{name}` replaced by values. Words that differ by the number `{n}` have two forms: `one|other`. */
export function t(key, values) {
  const entry = words[key];
  const text = form(entry ? entry[LANGUAGES.indexOf(language)] : key, values?.n);
  return values ? text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole)) : text;
}

/** Whether there are words for a key. */
export const has = (key) => key in words;

const locale = () => (language === 'zh' ? 'zh-CN' : 'en-GB');

/** A whole number with separators; a dash when it is not known. */
export const count = (n) => (n === null || n === undefined ? '–' : Math.round(n).toLocaleString(locale()));

/** A rate: one decimal below ten. */
export function rate(n) {
  if (n === null || n === undefined) return '–';
  return n > 0 && n < 10 ? n.toLocaleString(locale(), { maximumFractionDigits: 1 }) : count(n);
}

/** Date and time of Unix milliseconds, with the time zone. */
export function time(ms) {
  if (ms === null || ms === undefined) return '–';
  return new Date(ms).toLocaleString(locale(), { dateStyle: 'medium', timeStyle: 'long' });
}

/** The same in short: no seconds, no date where it is the day of `nowMs`, and no year where it is that one's. */
export function shortTime(ms, nowMs) {
  const [at, now] = [new Date(ms), new Date(nowMs)];
  const hours = { hour: '2-digit', minute: '2-digit', timeZoneName: 'short' };
  const year = at.getFullYear() === now.getFullYear() ? {} : { year: 'numeric' };
  return at.toLocaleString(locale(), at.toDateString() === now.toDateString() ? hours : { day: 'numeric', month: 'short', ...year, ...hours });
}

/** The time zone in which this browser shows and reads times. */
export const timeZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Digits after the point of the currencies that have not two (ISO 4217), as domain/currency.rs has them: browsers do not agree. */
const DIGITS = {
  BHD: 3, BIF: 0, CLF: 4, CLP: 0, DJF: 0, GNF: 0, IQD: 3, ISK: 0, JOD: 3, JPY: 0, KMF: 0, KRW: 0, KWD: 3,
  LYD: 3, OMR: 3, PYG: 0, RWF: 0, TND: 3, UGX: 0, UYI: 0, UYW: 4, VND: 0, VUV: 0, XAF: 0, XOF: 0, XPF: 0,
};

/** Digits after the point of a currency: two for yuan, none for yen, three for dinars. Two when it is unknown. */
export const digits = (currency) => (Object.hasOwn(DIGITS, currency) ? DIGITS[currency] : 2);

/** An amount in the currency's smallest unit. */
export function price(amount, currency) {
  const places = digits(currency);
  const value = amount / 10 ** places;
  try {
    return value.toLocaleString(locale(), { style: 'currency', currency, minimumFractionDigits: places, maximumFractionDigits: places });
  } catch {
    return `${value.toFixed(places)} ${currency}`;
  }
}
