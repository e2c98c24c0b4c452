#!/bin/sh
echo "${sonarr_series_title:-none}"
