# shellcheck shell=bash
# Estimates the cost of instance-hours by k8s/instance-prices.csv, on-demand prices of EC2 instance types. Source it.
price_table=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/instance-prices.csv

# Price of an instance-hour in USD; empty if the table lacks the type.
price_of() { [ ! -r "$price_table" ] || awk -F , -v type="$1" '$1 == type { print $2 }' "$price_table"; }

# Prints one line: the cost of instances of each type for some minutes. Types without a price, and the type `unknown`, are
# named.
cost_line() {  # LABEL TYPE=MINUTES..., minutes of all instances together
  [ -r "$price_table" ] || { echo "$1: not known, since $price_table cannot be read" && return; }
  printf '%s\n' "${@:2}" | LABEL=$1 awk -F '[,=]' '
    FNR == NR { if (FNR > 1) { price[$1] = $2; region = $3; date = $4 } next }
    NF == 2 { if (!($1 in minutes)) types[++count] = $1; minutes[$1] += $2 }
    END {
      for (i = 1; i <= count; i++) {
        type = types[i]
        hours = minutes[type] / 60
        list = list (list == "" ? "" : " + ") sprintf("%.4g h of %s", hours, type == "unknown" ? "nodes of unknown type" : type)
        if (type in price) { known = 1; sum += hours * price[type] } else if (type != "unknown") list = list " (no price)"
      }
      if (!known) printf "%s: no price is known for %s\n", ENVIRON["LABEL"], list
      else
        printf "%s: %.2f USD for %s; on-demand prices of %s on %s, without storage, traffic and control plane\n",
          ENVIRON["LABEL"], sum, list, region, date
    }' "$price_table" -
}
