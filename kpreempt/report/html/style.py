"""The style of every page: colors for light and dark, and widths from phones to A4."""

from __future__ import annotations

import base64
import hashlib

# Text has a contrast of at least 4.5:1 to its background, marks and bars 3:1.
LIGHT = {
    "ground": "#ffffff",
    "panel": "#f5f7f9",
    "line": "#c9d1d9",
    "ink": "#1b2026",
    "dim": "#545d68",
    "good": "#136c2e",
    "bad": "#b3241c",
    "warn": "#7d4f00",
    "link": "#0a53c4",
    "track": "#dfe4ea",
    "before": "#6b7785",
}
DARK = {
    "ground": "#10151b",
    "panel": "#19212a",
    "line": "#3a4653",
    "ink": "#e6ebf1",
    "dim": "#a3afbc",
    "good": "#5fd37a",
    "bad": "#ff9086",
    "warn": "#e6b450",
    "link": "#82b9ff",
    "track": "#313d4a",
    "before": "#93a1b0",
}
# For workloads, in the order of their first appearance; each color has a name next to it.
WORKLOADS_LIGHT = ("#1f63d6", "#a85300", "#7a45c9", "#0f766e", "#b8327f", "#666600", "#86492b", "#475569")
WORKLOADS_DARK = ("#6ea8ff", "#f0a35e", "#b794f6", "#4fc4b8", "#f283bd", "#c4c44a", "#d19a7c", "#a9b6c6")

_STYLE_RULES = """
*{box-sizing:border-box}
html{color-scheme:light dark;-webkit-text-size-adjust:100%}
body{margin:0 auto;max-width:76rem;padding:1.5rem clamp(.8rem,3vw,2rem) 4rem;background:var(--ground);color:var(--ink);
font:1rem/1.5 system-ui,-apple-system,"Segoe UI","Helvetica Neue",Arial,sans-serif;overflow-wrap:anywhere}
h1,h2,h3,h4{line-height:1.3;margin:0}
h1{font-size:1.75rem}
h2{font-size:1.3rem;margin-bottom:.8rem;padding-bottom:.3rem;border-bottom:1px solid var(--line)}
h3{font-size:1rem;margin:1.2rem 0 .4rem}
section{margin-top:2.6rem}
p{margin:.4rem 0;max-width:48rem}
a{color:var(--link)}
ol,ul{margin:.4rem 0;padding-left:1.4rem}
bdi{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.9em;
overflow-wrap:anywhere}
.message{overflow-wrap:anywhere}
h3 bdi{font-size:1em}
svg{overflow:visible;display:block}
.dim,.note{color:var(--dim)}
.good{color:var(--good)}.bad{color:var(--bad)}.warn{color:var(--warn)}
.note{font-size:.9rem}
.badge{display:inline-block;border:1px solid currentColor;border-radius:.3rem;padding:0 .4em;font-size:.85em;
font-weight:600;white-space:nowrap}
.badge.message{white-space:normal}
.banner{border:1px solid var(--line);border-left:.5rem solid currentColor;border-radius:.4rem;
background:var(--panel);padding:1.1rem 1.3rem}
.banner>*{color:var(--ink)}
.banner h1 span{color:var(--good);white-space:nowrap}
.banner.bad h1 span{color:var(--bad)}
.banner.warn h1 span{color:var(--warn)}
.banner .lead{font-size:1.1rem;max-width:60rem}
.event{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.9rem;
border-left:.3rem solid var(--line);background:var(--panel);padding:.6rem .9rem;max-width:none;white-space:pre-wrap}
.counts{display:flex;flex-wrap:wrap;gap:.4rem 2rem;margin:.8rem 0 .6rem}
.counts div{display:flex;flex-direction:column-reverse}
.counts dt{color:var(--dim);font-size:.9rem}
.counts dd{margin:0;font-size:1.5rem;font-weight:650;line-height:1.2}
.counts .bad dd{color:var(--bad)}
.banner .facts{color:var(--dim);margin:0;font-size:.9rem;max-width:none}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;padding:0;margin:1rem 0 0}
table{border-collapse:collapse;width:100%}
caption{text-align:left;color:var(--dim);font-size:.9rem;padding-bottom:.4rem}
th,td{text-align:left;overflow-wrap:break-word;vertical-align:top;padding:.4rem .9rem .4rem 0;
border-bottom:1px solid var(--line);font-weight:400}
thead th{color:var(--dim);font-size:.85rem;border-bottom-width:2px;vertical-align:bottom}
thead .long{overflow-wrap:anywhere;min-width:6rem}
th:last-child,td:last-child{padding-right:0}
table+table{margin-top:1.2rem}
tbody th{min-width:7rem}
td{font-variant-numeric:tabular-nums}
.fold summary{cursor:pointer;color:var(--link);padding:.4rem 0}
@media screen{.fold:not([open])+.folded{display:none}}
.card{border:1px solid var(--line);border-left:.3rem solid var(--line);border-radius:.4rem;
padding:.7rem 1rem;margin:.8rem 0}
.card.fails{border-left-color:var(--bad)}
.card>h3{margin-top:0}
.card h4{margin:0 0 .3rem;text-wrap:pretty;font-size:1rem;font-weight:600}
.card dl{display:grid;grid-template-columns:10rem minmax(0,1fr);gap:.15rem .9rem;margin:.5rem 0 0;font-size:.94rem}
.card dt{color:var(--dim)}.card dd{margin:0}
.rows{display:grid;grid-template-columns:10rem minmax(0,1fr);gap:.15rem .9rem;margin:.5rem 0}
.rows dt{color:var(--dim)}.rows dd{margin:0}
.lead .line{display:block}
.chain{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.5rem 0;margin:0}
.chain li{display:flex;align-items:center;min-width:0;max-width:100%}
.chain li+li::before{content:"\\2192";padding:0 .6rem;color:var(--dim)}
.chain span{min-width:0;border:1px solid var(--line);border-radius:.3rem;background:var(--panel);padding:.15rem .6rem}
.chain small{display:block;color:var(--dim);font-size:.8rem}
.lane,.axis{display:grid;grid-template-columns:minmax(11rem,19rem) 2rem minmax(0,1fr);column-gap:.5rem;
padding-right:1rem}
.lane{border-top:1px solid var(--line);padding-top:.4rem;padding-bottom:.4rem}
.lane h3{margin:0;font-size:.94rem}.lane p{margin:0;font-size:.85rem;color:var(--dim)}
.axis svg{grid-column:3}
svg text{fill:var(--dim);font:12px system-ui,sans-serif;font-variant-numeric:tabular-nums}
.grid{stroke:var(--line);stroke-width:1}
.wanted{stroke:var(--dim);stroke-width:1;stroke-dasharray:4 4;vector-effect:non-scaling-stroke;fill:none}
.area{fill:var(--link);fill-opacity:.16}
.ready{fill:none;stroke:var(--link);stroke-width:2;vector-effect:non-scaling-stroke}
.rough .ready{stroke-dasharray:6 4}
.lands{fill:var(--good)}
.victim{fill:var(--bad);stroke:var(--bad);stroke-width:1.5}
.leaves{fill:none;stroke:var(--dim);stroke-width:1.5}
.victim,.leaves{transform:translateX(-4px)}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.5rem;list-style:none;padding:0;font-size:.9rem}
.legend li{display:flex;align-items:center;gap:.4rem}
.clock{list-style:none;padding:0}
.clock>li{display:grid;grid-template-columns:4.5rem minmax(0,1fr);gap:.6rem;padding:.3rem 0;
border-bottom:1px solid var(--line)}
.clock p{margin:0 0 .15rem;max-width:none}
.tree{list-style:none;padding:0}
.tree li{border-left:2px solid var(--line);padding:.25rem 0 .25rem .8rem;margin-bottom:.3rem}
.tree .d2{margin-left:1.4rem}.tree .d3{margin-left:2.8rem}.tree .d4{margin-left:4.2rem}.tree .d5{margin-left:5.6rem}
.tree .d6{margin-left:7rem}.tree .d7{margin-left:8.4rem}.tree .d8{margin-left:9.8rem}
.tree .badge{margin-right:.3rem}
.maps{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(24rem,100%),1fr));gap:1rem}
.map{border:1px solid var(--line);border-radius:.4rem;padding:.8rem 1rem;min-width:0}
.map h3{margin:0 0 .5rem}
.usage{display:grid;grid-template-columns:5.5rem minmax(0,1fr);gap:.1rem .6rem;margin:0 0 .5rem}
.usage dt{font-size:.9rem}.usage dd{margin:0;font-size:.9rem}
.usage svg{margin:.25rem 0 .1rem}
.track{fill:var(--track)}.before{fill:var(--before)}.freed{fill:none;stroke:var(--bad);stroke-width:1.5}.after{fill:var(--link)}.over{fill:var(--bad)}
.map tbody tr:last-child>*{border-bottom:0}
.map table{font-size:.9rem;margin-top:.3rem}
.map th,.map td{padding-top:.25rem;padding-bottom:.25rem}
.map td{width:27%}
.hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.pods{white-space:nowrap;letter-spacing:.04em;margin-right:.35em}
.share{margin-top:.35rem}
[hidden]{display:none!important}
.search{display:flex;flex-wrap:wrap;gap:.4rem 1.2rem;align-items:center;margin:1rem 0 0}
.search input{width:min(22rem,60vw)}
.search input,.search select{font:inherit;color:inherit;background:var(--panel);border:1px solid var(--before);
border-radius:.3rem;padding:.2rem .5rem;max-width:100%}
.search output{color:var(--dim)}
.card pre{margin:.2rem 0;font-size:.9em;white-space:pre-wrap;overflow-wrap:anywhere}
.card.warns{border-left-color:var(--warn)}
footer{margin-top:3rem;color:var(--dim);font-size:.85rem}
@media screen and (max-width:44rem){
.stack thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.stack,.stack caption,.stack tbody,.stack tr,.stack th,.stack td{display:block}
.stack tr{border-bottom:1px solid var(--line);padding:.5rem 0}
.stack tbody th,.stack td{border:0;padding:.1rem 0}
.stack tbody th{font-weight:600}
.stack td{display:flow-root;padding-left:8.6rem;min-height:1.6rem}
.stack td:empty{display:none}
.stack td::before{content:attr(data-label);float:left;margin-left:-8.6rem;width:8rem;color:var(--dim);line-height:1.65;
font-size:.9rem}
.map tbody th{min-width:0}
.stack td .folded{margin-left:-8.6rem;clear:left}
.stack tbody th .dim{font-weight:400}
.lane,.axis{grid-template-columns:1.6rem minmax(0,1fr)}
.lane>div{grid-column:1/-1;padding-bottom:.4rem}
.axis svg{grid-column:2}
.tree li[class]{margin-left:0}
.card dl,.rows{grid-template-columns:minmax(0,1fr)}
.card dd,.rows dd{margin-bottom:.3rem}
}
@page{size:A4;margin:14mm 12mm}
@media print{
html{font-size:10pt}
body{max-width:none;padding:0 1px}
section{margin-top:1.8rem}
nav,.fold,.search{display:none}
.banner,.card,.map,.lane,.legend,tr,li,.usage,caption{break-inside:avoid}
h2,h3,h4,caption,thead,.legend,.axis:not(:last-of-type),section>p:not(:last-child){break-after:avoid}
footer{margin-top:1rem;break-before:avoid}
thead{display:table-header-group}
a{color:inherit;text-decoration:none}
p{orphans:3;widows:3}
.lane,.axis{grid-template-columns:14rem 1.6rem minmax(0,1fr)}
.maps{grid-template-columns:repeat(2,minmax(0,1fr))}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}
}
"""


def _variables(colors: dict[str, str], workloads: tuple[str, ...]) -> str:
    named = [f"--{name}:{value}" for name, value in colors.items()]
    named += [f"--w{number}:{value}" for number, value in enumerate(workloads)]
    return f":root{{{';'.join(named)}}}"


def _style() -> str:
    light = _variables(LIGHT, WORKLOADS_LIGHT)
    dark = f"@media (prefers-color-scheme:dark){{{_variables(DARK, WORKLOADS_DARK)}}}"
    # Paper is white, whatever the color scheme of the screen.
    paper = f"@media print{{html{{color-scheme:light}}{light}}}"
    blocks = "".join(f".w{number}{{color:var(--w{number})}}" for number in range(len(WORKLOADS_LIGHT)))
    return "\n".join([light, dark, paper, _STYLE_RULES.strip(), blocks])


STYLE = _style()


def policy(script: str = "") -> str:
    """The content security policy of a page: it allows its own style and ``script`` only."""
    scripts = [f"script-src {_digest(script)}"] if script else []
    return "; ".join(
        ("default-src 'none'", f"style-src {_digest(STYLE)}", *scripts, "base-uri 'none'", "form-action 'none'")
    )


def _digest(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
